// A repository in the workspace. Looking runs nothing that the repository names; hooks and filters
// of what changes it run in the sandbox, as they would by hand. What changes it is never sent twice.

import type { Call, Transport } from "./transport.js";
import type { components } from "./wire.js";

type Schemas = components["schemas"];

/** That there is no repository is an answer, with `isRepository` and a `reason`; so for all here. */
export type GitStatus = Schemas["GitStatus"];
export type GitDiff = Schemas["GitDiff"];
export type GitShow = Schemas["GitShow"];
export type GitLog = Schemas["GitLog"];
export type GitBranches = Schemas["GitBranches"];
export type GitPerson = Schemas["GitPerson"];

/** Of which repository, where it is not the workspace's own. */
interface In {
  path?: string;
}

/** `sandbox.git` */
export class Git {
  constructor(
    private readonly transport: Transport,
    private readonly sandboxPath: string,
  ) {}

  /** What differs from the last commit. */
  status(path?: string, options: { untracked?: "normal" | "all" | "no"; ignored?: boolean } = {}): Promise<GitStatus> {
    return this.#look("status", { path, ...options });
  }

  /** Differences as text: of the work tree, of the index if `staged`, or between commits. */
  diff(path?: string, options: { staged?: boolean; from?: string; to?: string } = {}): Promise<GitDiff> {
    return this.#look("diff", { path, ...options });
  }

  /** A file as a commit has it; the last one where none is named. */
  show(path: string, revision?: string): Promise<GitShow> {
    return this.#look("show", { path, revision });
  }

  /** Commits, newest first: 50 by default, at most 500. */
  log(path?: string, options: { revision?: string; limit?: number; after?: number } = {}): Promise<GitLog> {
    return this.#look("log", { path, ...options });
  }

  /** Branches, and those of remotes as last seen. */
  branches(path?: string): Promise<GitBranches> {
    return this.#look("branches", { path });
  }

  /** Puts changes into the index: of `paths`, or `all`. */
  async stage(paths: string[] = [], options: In & { all?: boolean } = {}): Promise<void> {
    await this.#change("stage", { paths, ...options });
  }

  /** Takes changes out of the index; the work tree keeps them. */
  async unstage(paths: string[] = [], options: In & { all?: boolean } = {}): Promise<void> {
    await this.#change("unstage", { paths, ...options });
  }

  /** Commits what is in the index and gives the commit's id. */
  async commit(message: string, options: In & { author?: GitPerson; amend?: boolean } = {}): Promise<string> {
    const { commit } = await this.#change<{ commit: string }>("commit", { message, ...options });
    return commit;
  }

  /** Checks out a branch; with `create` it is made first, from what is checked out. */
  async checkout(branch: string, options: In & { create?: boolean } = {}): Promise<void> {
    await this.#change("checkout", { branch, ...options });
  }

  #look<T>(verb: string, query: NonNullable<Call["query"]>): Promise<T> {
    return this.transport.json("GET", `${this.sandboxPath}/git:${verb}`, { query });
  }

  #change<T>(verb: string, json: object): Promise<T> {
    return this.transport.json("POST", `${this.sandboxPath}/git:${verb}`, { json });
  }
}
