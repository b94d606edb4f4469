"""Adapter for libraries of Python:  python3 conformance/adapters/python.py NAME

SPDX-License-Identifier: MIT
"""
import asyncio
import json
import sys
from importlib import metadata


class RedisPy:
    """redis.lock.Lock, on one node."""

    def __init__(self, nodes, timeout):
        import redis

        host, port = nodes[0].split(":")
        self.client = redis.Redis(host=host, port=int(port), socket_timeout=timeout)
        self.locks = []

    def acquire(self, resource, ttl):
        lock = self.client.lock(resource, timeout=ttl / 1000, blocking=False)
        if not lock.acquire():
            return None
        self.locks.append(lock)
        return str(len(self.locks) - 1), None

    def extend(self, lock, ttl):
        self.locks[int(lock)].extend(ttl / 1000, replace_ttl=True)

    def release(self, lock):
        self.locks[int(lock)].release()

    def validity(self, lock):
        return None


class Aioredlock:
    """aioredlock, with one try."""

    def __init__(self, nodes, timeout):
        from aioredlock import Aioredlock as Manager

        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        servers = [
            {"host": "127.0.0.1", "port": int(address.split(":")[1]), "socket_timeout": timeout} for address in nodes
        ]
        self.manager = Manager(servers, retry_count=1)
        self.locks = []

    def acquire(self, resource, ttl):
        lock = self.loop.run_until_complete(self.manager.lock(resource, lock_timeout=ttl / 1000))
        if not lock.valid:
            return None
        self.locks.append(lock)
        return str(len(self.locks) - 1), None

    def extend(self, lock, ttl):
        self.loop.run_until_complete(self.manager.extend(self.locks[int(lock)], ttl / 1000))

    def release(self, lock):
        self.loop.run_until_complete(self.manager.unlock(self.locks[int(lock)]))

    def validity(self, lock):
        return None


LIBRARIES = {"redis-py": RedisPy, "aioredlock": Aioredlock}


def answer(library, request):
    if request["op"] == "acquire":
        granted = library.acquire(request["resource"], request["ttl"])
        if granted is None:
            return {"ok": False, "error": "not acquired"}
        lock, validity = granted
        return {"ok": True, "lock": lock} | ({} if validity is None else {"validity": validity})
    if request["op"] == "extend":
        library.extend(request["lock"], request["ttl"])
        return {"ok": True}
    if request["op"] == "release":
        library.release(request["lock"])
        return {"ok": True}
    validity = library.validity(request["lock"])
    return {"ok": validity is not None} | ({} if validity is None else {"validity": validity})


def main():
    library = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "open":
                library = LIBRARIES[sys.argv[1]](request["nodes"], request["timeout"] / 1000)
                package = {"redis-py": "redis"}.get(sys.argv[1], sys.argv[1])
                result = {"ok": True, "version": metadata.version(package)}
            else:
                result = answer(library, request)
        except Exception as failure:  # any failure of a library is an answer
            result = {"ok": False, "error": f"{type(failure).__name__}: {failure}"}
        print(json.dumps({"id": request["id"]} | result), flush=True)


main()
