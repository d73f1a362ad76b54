// A network that fails: a TCP proxy that cuts connections after so many bytes of the answer, in
// the middle of whatever they are, lets requests through but not their answers, refuses
// connections, or keeps silent.

import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import { once } from "node:events";

export interface Behaviour {
  /** Bytes of the server's answers on a connection before it is cut. */
  cutAfter?: () => number;
  /** Whether it is left open then, but for ever silent, as when a cable is pulled. */
  stall?: () => boolean;
}

export class CutProxy {
  readonly #open = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  behaviour: Behaviour = {};
  connections = 0;
  cuts = 0;
  /** What clients sent, for counting requests. */
  requests = "";

  private constructor(private readonly target: URL) {}

  static async to(target: string): Promise<CutProxy> {
    const proxy = new CutProxy(new URL(target));
    await proxy.accept();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async accept(): Promise<void> {
    const server = createServer((client) => this.#carry(client));
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Cuts what is open and refuses what comes. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#open) socket.destroy();
    if (!server) return;
    server.close();
    await once(server, "close");
  }

  cutAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  count(start: string): number {
    return this.requests.split(start).length - 1;
  }

  #carry(client: Socket): void {
    this.connections += 1;
    // Asked for with the first answer: clients connect before they need it.
    let left: number | undefined;
    let stall = false;
    let stalled = false;
    const server = connect(Number(this.target.port), this.target.hostname);
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#open.add(socket);
      socket.setNoDelay();
      socket.on("error", end);
      socket.on("close", () => {
        this.#open.delete(socket);
        if (!stalled) end();
      });
    }
    client.on("data", (bytes) => {
      this.requests += bytes.toString("latin1").slice(0, 4096);
      if (!server.write(bytes)) client.pause();
    });
    server.on("drain", () => client.resume());
    client.on("drain", () => server.resume());
    server.on("data", (bytes) => {
      if (left === undefined) {
        left = this.behaviour.cutAfter?.() ?? Number.POSITIVE_INFINITY;
        stall = this.behaviour.stall?.() ?? false;
      }
      const part = bytes.subarray(0, left);
      left -= part.length;
      if (left > 0) {
        if (!client.write(part)) server.pause();
        return;
      }
      this.cuts += 1;
      stalled = stall;
      server.removeAllListeners("data");
      if (stalled) server.destroy();
      client.write(part, stalled ? undefined : end);
    });
  }
}
