// Adapter for libraries of npm:  node conformance/adapters/node.mjs NAME
//
// SPDX-License-Identifier: MIT
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { resolve } from "node:path";

const packages = resolve(process.env.BUILD ?? "build", "interop/node/package.json");
const require = createRequire(packages);
const Redis = require("ioredis").default ?? require("ioredis");

// A connection of ioredis with its defaults and a time-out for commands.
const connect = (timeout) => (address) => {
  const [host, port] = address.split(":");
  const redis = new Redis({ host, port: Number(port), commandTimeout: timeout });
  redis.on("error", () => {});
  return redis;
};
// The same with node-redis. A reply is awaited until the connection is idle for so long; without a
// strategy, the client then never connects again.
const connectNodeRedis = (timeout) => async (address) => {
  const { createClient } = require("redis");
  const client = createClient({
    url: `redis://${address}`, commandOptions: { timeout },
    socket: { socketTimeout: timeout, reconnectStrategy: (retries) => Math.min(50 * retries, 1000) },
  });
  client.on("error", () => {});
  return client.connect();
};
const rest = (end) => Math.floor(Number(end) - Date.now());

// Each library: open(nodes, timeout) returns acquire(resource, ttl), which returns a lock or throws.
// A lock has extend(ttl) and release(), which throw, and, if the library knows it, validity().
const libraries = {
  redlock4(nodes, timeout) {
    const Redlock = require("redlock4");
    const redlock = new Redlock(nodes.map(connect(timeout)), { retryCount: 0 });
    redlock.on("clientError", () => {});
    return async (resource, ttl) => {
      let lock = await redlock.lock(resource, ttl);
      return {
        validity: () => rest(lock.expiration),
        extend: async (next) => { lock = await lock.extend(next); },
        release: () => lock.unlock(),
      };
    };
  },
  redlock5: (nodes, timeout) => typescript(require("redlock5").default, nodes, timeout),
  sesamecare: (nodes, timeout) => typescript(require("@sesamecare-oss/redlock").Redlock, nodes, timeout),
  universal(nodes, timeout) {
    const { createRedlock, IoredisAdapter } = require("redlock-universal");
    const adapters = nodes.map(connect(timeout)).map((redis) => new IoredisAdapter(redis, { timeout }));
    return async (key, ttl) => {
      const redlock = createRedlock({ adapters, key, ttl, retryAttempts: 0 });
      const handle = await redlock.acquire();
      let end = handle.acquiredAt + ttl;
      return {
        extend: async (next) => {
          if (!(await redlock.extend(handle, next))) throw new Error("not extended");
          end = Date.now() + next;
        },
        release: async () => {
          if (!(await redlock.release(handle))) throw new Error("not released");
        },
      };
    };
  },
  semaphore(nodes, timeout) {
    const { RedlockMutex } = require("redis-semaphore");
    const clients = nodes.map(connect(timeout));
    return async (resource, ttl) => {
      const settings = { lockTimeout: ttl, acquireAttemptsLimit: 1, refreshInterval: 0 };
      const mutex = new RedlockMutex(clients, resource, settings);
      if (!(await mutex.tryAcquire())) throw new Error("not acquired");
      return {
        release: () => mutex.release(),
      };
    };
  },
  "redis-kit": async (nodes, timeout) => {
    const { Redlock } = require("@redis-kit/lock");
    const clients = await Promise.all(nodes.map(connectNodeRedis(timeout)));
    const redlock = new Redlock(clients, { maxRetryAttempts: 0 });
    return async (resource, ttl) => {
      const lock = await redlock.acquire(resource, ttl);
      if (!lock) throw new Error("not acquired");
      return {
        validity: () => rest(lock.expirationTime),
        extend: async (next) => {
          if (!(await lock.extend(next))) throw new Error("not extended");
        },
        release: () => lock.release(),
      };
    };
  },
  "simple-redis-mutex": async (nodes, timeout) => {
    const { tryLock } = require("simple-redis-mutex");
    const client = await connectNodeRedis(timeout)(nodes[0]);
    return async (resource, ttl) => {
      const [held, release] = await tryLock(client, resource, { timeout: ttl });
      if (!held) throw new Error("not acquired");
      return { extend: () => release.refreshTimeout(), release };
    };
  },
};

function typescript(Redlock, nodes, timeout) {
  const redlock = new Redlock(nodes.map(connect(timeout)), { retryCount: 0 });
  redlock.on("error", () => {});
  return async (resource, ttl) => {
    let lock = await redlock.acquire([resource], ttl);
    return {
      validity: () => rest(lock.expiration),
      extend: async (next) => { lock = await lock.extend(next); },
      release: () => lock.release(),
    };
  };
}

const directories = { sesamecare: "@sesamecare-oss/redlock", universal: "redlock-universal", semaphore: "redis-semaphore",
  "redis-kit": "@redis-kit/lock" };
const name = process.argv[2];
const { version } = JSON.parse(readFileSync(resolve(packages, "../node_modules", directories[name] ?? name, "package.json")));
const locks = new Map();
let acquire;

const answers = {
  async open({ nodes, timeout }) {
    acquire = await libraries[name](nodes, timeout);
    return { ok: true, version: version.replace(/^v/, "") };
  },
  async acquire({ resource, ttl }) {
    const lock = await acquire(resource, ttl);
    const id = String(locks.size + 1);
    locks.set(id, lock);
    return { ok: true, lock: id, validity: lock.validity?.() };
  },
  async extend({ lock, ttl }) {
    await locks.get(lock).extend(ttl);
    return { ok: true, validity: locks.get(lock).validity?.() };
  },
  async release({ lock }) {
    await locks.get(lock).release();
    return { ok: true };
  },
  async validity({ lock }) {
    const validity = locks.get(lock).validity?.();
    return { ok: validity !== undefined, validity };
  },
};

// A rejected promise that a library leaves alone ends a process of Node: keep this one.
process.on("unhandledRejection", (reason) => console.error("unhandled:", reason?.message));
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = await answers[request.op](request).catch((error) => ({ ok: false, error: String(error?.message ?? error) }));
  console.log(JSON.stringify({ id: request.id, ...answer }));
}
process.exit(0);
