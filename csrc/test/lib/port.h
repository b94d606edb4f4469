/*
 * Ports of 127.0.0.1 for test servers: one process at a time has a port.
 *
 * SPDX-License-Identifier: MIT
 *
 * The holder of a port has an abstract Unix socket named "redlock-port-NUMBER". The kernel refuses
 * a second socket of that name, and removes it with the last process that has it open. So a server
 * that was killed can come back to its port, and a port that refuses connections goes on refusing
 * them, even if other tests run at the same time.
 */
#ifndef PORT_H
#define PORT_H

/*
 * Reserves a port on which no socket listens, until this process and its children have ended.
 * Returns 0 if there is none. The port is below those that the system gives to clients: a client's
 * socket would keep a server from coming back.
 */
int port_reserve(void);

#endif
