// Things that listen in a sandbox, reachable from outside.

import { NotFound } from "./errors.js";
import type { Transport } from "./transport.js";
import type { components } from "./wire.js";

type Schemas = components["schemas"];
export type PublishedPort = Schemas["Published"];
export type PortList = Schemas["PortList"];

/** `sandbox.ports` */
export class Ports {
  constructor(
    private readonly transport: Transport,
    private readonly path: string,
  ) {}

  /** The URL of a port that the sandbox was created with; the same one at every call. */
  async publish(port: number): Promise<string> {
    const reply = await this.transport.json<Schemas["PortReply"]>("GET", `${this.path}/${port}`);
    if (reply.found && reply.url) return reply.url;
    throw new NotFound({
      code: "port_not_found",
      message: `the sandbox was not created with port ${port}`,
      hint: `create it with ports: [${port}]`,
    });
  }

  /** The ports that may be published, and those that are. */
  list(): Promise<PortList> {
    return this.transport.json("GET", this.path);
  }

  async unpublish(port: number): Promise<void> {
    await this.transport.json("DELETE", `${this.path}/${port}`);
  }
}
