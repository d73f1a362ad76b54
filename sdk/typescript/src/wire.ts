// Made from openapi/sandbank.json by `npm run generate`. Do not edit.

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the daemon serves and can keep what it is told. Needs no token. */
        get: operations["sessions_healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sandboxes by state, creates by source, and the pool, for Prometheus. */
        get: operations["daemon_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document. Needs no token. */
        get: operations["daemon_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Each security control and whether it is in force. */
        get: operations["daemon_doctor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every event, with its number as `id`, its kind as `event` and the whole of it as `data`. */
        get: operations["daemon_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the daemon serves and can keep what it is told. Needs no token. */
        get: operations["daemon_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every image. */
        get: operations["images_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove an image that no sandbox uses. Slashes and colons of the name are percent-encoded. */
        delete: operations["images_remove"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images:import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import an image. Lines are `{"type":"progress","bytesDone","bytesTotal"}`, and at last
         *     `{"type":"done","image"}` or `{"type":"error","error"}`.
         */
        post: operations["images_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every live sandbox. */
        get: operations["sandboxes_list"];
        put?: never;
        /** Create a sandbox, or find the live one with this key. */
        post: operations["sandboxes_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One sandbox. */
        get: operations["sandboxes_inspect"];
        put?: never;
        post?: never;
        /** Stop and delete a sandbox with its workspace. */
        delete: operations["sandboxes_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every command the sandbox still knows, oldest first. */
        get: operations["commands_list"];
        put?: never;
        /**
         * Run a program. Its output is at `logs`, its ending at `wait`, or with `wait=true` in the answer
         *     to this request, which then comes when the command has ended.
         */
        post: operations["commands_start"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands/{commandId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How a command stands. */
        get: operations["commands_inspect"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands/{commandId}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Everything kept, then live, until the command has ended. Lines are
         *     `{"stream":"stdout"|"stderr"|"pty","data","seq","timeMs"}` or `{"stream":"control","type"}`
         *     with the types `dropped`, `ending` and `heartbeat`. A stream that breaks off is resumed with
         *     `after` set to the last `seq`.
         */
        get: operations["commands_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands/{commandId}/resize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Change the size of a command's terminal. */
        post: operations["commands_resize"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands/{commandId}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a signal to a command's process group. */
        post: operations["commands_signal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands/{commandId}/stdin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write to a command that was started with `"stdin":"open"` or a `pty`. */
        post: operations["commands_write"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands/{commandId}/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Blocks until the command has ended. A long wait sends white space before its JSON, because
         *     clients give up on silent servers. A transfer that breaks off says nothing about the command.
         */
        get: operations["commands_wait"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/commands/{commandId}:kill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send TERM to a command. Also true for one that is not there. */
        post: operations["commands_kill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/containment": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Attack the sandbox from inside and look at it from the host, and say what held. Limits are read,
         *     not run into; what the inside says is a hostile sandbox's word.
         */
        get: operations["sandboxes_containment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a file, or one range of it. */
        get: operations["files_download"];
        /** Write a file: replaced as a whole when the body is complete, or in place from an offset. */
        put: operations["files_upload"];
        post?: never;
        /** Delete a file or a directory. */
        delete: operations["files_remove"];
        options?: never;
        /** Size and version of a file, as headers. */
        head: operations["files_describe"];
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files:list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is in a directory, sorted by name. */
        get: operations["files_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files:mkdir": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a directory. */
        post: operations["files_mkdir"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files:move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Move or rename. */
        post: operations["files_rename"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files:read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a file of at most 32 MiB. */
        get: operations["files_read"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files:stat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a path names. */
        get: operations["files_stat"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files:write": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write files, all or none, making missing directories. */
        post: operations["files_write"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The ports a sandbox was created with, and those that are published. */
        get: operations["ports_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports/{port}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The URL of a port; published at the first call, the same ever after. */
        get: operations["ports_publish"];
        put?: never;
        post?: never;
        /** Close a published port. */
        delete: operations["ports_unpublish"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/post-mortem": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a sandbox ended, and what it did last. */
        get: operations["sandboxes_post_mortem"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a sandbox uses right now. */
        get: operations["sandboxes_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}:pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop every process where it stands; nothing is lost. */
        post: operations["sandboxes_pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}:resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let a paused sandbox go on. */
        post: operations["sandboxes_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}:stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop and delete a sandbox with its workspace. Also true for one that is not there. */
        post: operations["sandboxes_stop"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sessions, newest first, also those that have ended and are still known. */
        get: operations["sessions_list"];
        put?: never;
        /** Make a session. */
        post: operations["sessions_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One session. */
        get: operations["sessions_inspect"];
        put?: never;
        post?: never;
        /** End a session. Also true for one that has ended. */
        delete: operations["sessions_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/exec": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command in the session's shell, which keeps what it changes. Commands of one session take
         *     turns. One that takes too long is killed with all that it started, and answered 504.
         */
        post: operations["sessions_exec"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/exec/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command in the session's shell and get its output as it is written: `chunk` events, then
         *     `done`, or `error` for what goes wrong after the start, a timeout among it. Chunks are never cut
         *     inside a character; newlines at the end stay.
         */
        post: operations["sessions_exec_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/fs/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a file, or its beginning. */
        get: operations["sessions_read"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/fs/upload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Upload files, all or none, making missing directories. */
        post: operations["sessions_upload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/fs/write": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write a file as a whole, making missing directories. */
        post: operations["sessions_write"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a session uses right now. Looking does not extend its life. */
        get: operations["sessions_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every scoped token there ever was. */
        get: operations["tokens_list"];
        put?: never;
        /** Make a token with a scope. */
        post: operations["tokens_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tokens/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a token; the next request with it is refused. */
        delete: operations["tokens_revoke"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every kept workspace. */
        get: operations["workspaces_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workspaces/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a workspace with all that is in it. Also true for one that is not there; refused while a
         *     session has it.
         */
        delete: operations["workspaces_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workspaces/{id}/fs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is in a directory, sorted by name. */
        get: operations["workspaces_list_files"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workspaces/{id}/fs/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a file, or its beginning. */
        get: operations["workspaces_read"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workspaces/{id}/fs/upload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Upload files, all or none; the workspace is made when it is not there. */
        post: operations["workspaces_upload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workspaces/{id}/fs/write": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write a file as a whole; the workspace is made when it is not there. */
        post: operations["workspaces_write"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Capabilities: {
            concurrentCreates: number;
            cpuLimit: boolean;
            diskQuota: boolean;
            memoryLimit: boolean;
            networkEgress: boolean;
            pause: boolean;
            pidsLimit: boolean;
        };
        /** @description Times are Unix times in milliseconds. */
        Command: {
            argv: string[];
            commandId: string;
            cwd?: string | null;
            /**
             * Format: int64
             * @description Output that is no longer kept.
             */
            droppedBytes: number;
            /** Format: int64 */
            endedAtMs?: number | null;
            /** @description `{"kind": "exited" | "signaled" | "timed_out" | "oom_killed" | "killed" | "lost", …}` */
            ending?: Record<string, never> | null;
            /**
             * Format: int32
             * @description As a shell shows it: 124 for a timeout, 128 + n for a signal; none while it runs.
             */
            exitCode?: number | null;
            /**
             * Format: int64
             * @description Number of the newest log record.
             */
            lastSeq: number;
            /**
             * Format: int32
             * @description Inside the sandbox.
             */
            pid: number;
            pty: boolean;
            shell?: components["schemas"]["Shell"] | null;
            /** Format: int64 */
            startedAtMs: number;
            /** @description `running` or `ended`. */
            state: string;
            /** Format: int64 */
            stderrBytes: number;
            /** Format: int64 */
            stdinOffset: number;
            /** Format: int64 */
            stdoutBytes: number;
        };
        CommandList: {
            commands: components["schemas"]["Command"][];
        };
        Containment: {
            /** @description No control that is claimed failed. */
            contained: boolean;
            /** Format: int64 */
            durationMs: number;
            probes: components["schemas"]["ContainmentProbe"][];
            sandboxId: string;
        };
        ContainmentProbe: {
            attack: string;
            /** @description The control that it proves. */
            control: string;
            /** @description The same done legitimately, which must work. */
            counterpart: string;
            evidence: string;
            name: string;
            /** @description What must come of it. */
            refusal: string;
            /** @description `held`, `failed`, `not_claimed` or `not_tried`. */
            standing: string;
        };
        Control: {
            detail: string;
            fix?: string | null;
            name: string;
            /** @description `in_force`, `weaker` or `missing`. */
            standing: string;
        };
        /** @description Only for the documentation: sandboxd's fields are read loosely, number by number. */
        CreateBody: {
            /** @description Base environment of every command. */
            env?: {
                [key: string]: string;
            } | null;
            /**
             * Format: int64
             * @description 10 000 to 21 600 000.
             */
            idleTtlMs?: number | null;
            /** @description Image name; by default the one of the runtime's name, where it was imported. */
            image?: string | null;
            /**
             * Format: int64
             * @description Ends the sandbox whatever it does.
             */
            maxLifetimeMs?: number | null;
            network?: components["schemas"]["Network"] | null;
            /** @description At most 4; only these can be published. */
            ports?: number[] | null;
            resources?: components["schemas"]["Resources"] | null;
            /** @description `node24` or `python3.13`; others become `node24`. */
            runtime?: string | null;
            /**
             * @description The caller's name for the sandbox; a live one with this key is found again. Not one that
             *     begins with `session:` or `workspace:`.
             */
            sessionKey: string;
            /**
             * @description A kept workspace: made when it is not there, shared with other sandboxes that name it, and
             *     still there when the sandbox has ended. Needs a token, on a loopback address too. `diskMb` is then the quota of the workspace; the
             *     smallest one of the sandboxes that have it holds.
             */
            workspace?: string | null;
        };
        CreateReply: {
            /** @description Only of a new one: `pool` when its machine was ready, `cold` when it was made now. */
            acquireSource?: ("pool" | "cold") | null;
            /** @description False when a sandbox with this key was there already. */
            created: boolean;
            sandboxId: string;
        };
        CreateSession: {
            /** @description `base`, `python`, `node`, or an imported image. */
            image?: string | null;
            /**
             * Format: int64
             * @description 0 to 86 400; 0 or none is the server's own.
             */
            ttl_seconds?: number | null;
            /** @description A workspace that is kept when the session ends; made when it is not there. */
            workspace_id?: string | null;
        };
        DirListing: {
            entries: components["schemas"]["FileEntry"][];
            /** @description There are more than the runner tells at once. */
            truncated: boolean;
        };
        Doctor: {
            capabilities: components["schemas"]["Capabilities"];
            controls: components["schemas"]["Control"][];
            engine: string;
            engineVersion: string;
            /** @description Every control is in force. */
            healthy: boolean;
            /** @description Settings without effect, likely slips, weak choices. */
            notices: string[];
            version: string;
        };
        /** @description `{"ok":true}`. */
        Done: {
            ok: boolean;
        };
        /** @description An error on the wire. */
        Error: {
            /** @description Stable; test this one. */
            code: string;
            details?: Record<string, never> | null;
            /** @description A sentence for people. */
            error: string;
            /** @description What to do next. */
            hint?: string | null;
            /** @description Also in the `x-request-id` header and in the daemon's log. */
            requestId: string;
            /** @description Whether the same request may succeed later, unchanged. */
            retryable: boolean;
        };
        Event: {
            detail: Record<string, never>;
            /** @description `sandbox.created`, `port.published`, … */
            kind: string;
            sandboxId?: string | null;
            /** Format: int64 */
            seq: number;
            /**
             * Format: int64
             * @description Unix time in milliseconds.
             */
            timeMs: number;
        };
        Exec: {
            /** @description For the session's shell, 1 to 1 048 576 bytes. */
            cmd: string;
            /** @description Keep carriage returns, control sequences and newlines at the end. */
            raw_output?: boolean | null;
            /**
             * Format: int64
             * @description 0 to 600 000; 0, none, and what is above the server's own limit mean that limit.
             */
            timeout_ms?: number | null;
        };
        /** @description Only for the documentation: one event, as a reader of such streams takes it apart. */
        ExecEvent: {
            /**
             * @description JSON: `{"chunk","timestamp"}`, `{"exit_code","cwd","duration_ms","truncated"}` or
             *     `{"error","error_code"}`.
             */
            data: string;
            /** @description `chunk`, `done` or `error`. */
            event: string;
        };
        ExecResult: {
            /** @description Where the shell is now; empty when nobody can say. */
            cwd: string;
            /** Format: int64 */
            duration_ms: number;
            /** Format: int32 */
            exit_code: number;
            /** @description What was written to both streams, in that order. */
            output: string;
            /** @description There was more than 5 MiB of it. */
            truncated: boolean;
        };
        FileEntry: components["schemas"]["FileStat"] & {
            name: string;
            /** @description The exact bytes where the name is not UTF-8. */
            nameHex?: string | null;
            /** @description Of a symbolic link. */
            target?: string | null;
        };
        FileStat: {
            /** @description `file`, `directory`, `symlink` or `other`. */
            kind: string;
            /**
             * Format: int32
             * @description Permission bits.
             */
            mode: number;
            /** Format: int64 */
            modifiedMs: number;
            /** Format: int64 */
            size: number;
        };
        Health: {
            engine: string;
            ok: boolean;
            /** @description The daemon's own. Kernels and engines are told to those with a token only, by the doctor. */
            version: string;
        };
        Healthz: {
            /** @description `ok`. */
            status: string;
        };
        Image: {
            /** @description `sha256:…` of the image's configuration; none for `host`. */
            digest?: string | null;
            /**
             * Format: int64
             * @description Unix time in milliseconds.
             */
            importedAtMs?: number | null;
            /** Format: int32 */
            layers: number;
            name: string;
            /** Format: int64 */
            sizeBytes: number;
        };
        ImageList: {
            images: components["schemas"]["Image"][];
        };
        ImportBody: {
            name: string;
            /**
             * @description Of the archive, absolute, on the daemon's machine: rootfs tar, `docker save` or OCI
             *     layout; plain, gzip or zstd.
             */
            path: string;
        };
        Limits: {
            /**
             * Format: int32
             * @description In thousandths of a core.
             */
            cpuMillis: number;
            /** Format: int64 */
            diskBytes?: number | null;
            /** Format: int64 */
            memoryBytes: number;
            /** Format: int32 */
            pids: number;
            /** Format: int64 */
            tmpBytes: number;
        };
        MkdirBody: {
            /** @description Make missing parents, and accept an existing directory. */
            parents?: boolean;
            path: string;
        };
        MoveBody: {
            from: string;
            /** @description Replace what is at `to`. */
            overwrite?: boolean;
            to: string;
        };
        /** @description Who the sandbox may reach; anything else in here is refused. */
        Network: {
            /** @description `default` when left out: public addresses only. `none`: nobody. */
            mode?: ("default" | "none") | null;
        };
        NewToken: {
            name: string;
            scope: string;
            /** @description Not shown again. */
            token: string;
        };
        PortList: {
            /** @description Ports that may be published. */
            allowed: number[];
            published: components["schemas"]["Published"][];
        };
        PortReply: {
            /** @description False when the port is not one the sandbox was created with. */
            found: boolean;
            /** Format: int32 */
            hostPort?: number | null;
            url?: string | null;
        };
        PostMortemView: {
            /** @description `{"kind": …}` */
            cause: Record<string, never>;
            /** Format: int64 */
            cpuUsageUs: number;
            /** Format: int64 */
            createdAtMs: number;
            /** Format: int64 */
            endedAtMs: number;
            id: string;
            key: string;
            lastCommands: components["schemas"]["Command"][];
            lastOutput: string;
            /** Format: int64 */
            memoryPeakBytes: number;
            /** Format: int64 */
            oomKills: number;
            /** @description The cause as a sentence. */
            reason: string;
        };
        Pty: {
            /** Format: int32 */
            cols: number;
            /** Format: int32 */
            rows: number;
        };
        Published: {
            address: string;
            /** Format: int32 */
            hostPort: number;
            /** Format: int32 */
            port: number;
            url: string;
        };
        /** @description Only for the documentation: see [`answer`]. */
        ReadFile: {
            content_base64: string;
            /** @description As it was asked for. */
            path: string;
            /** @description The file has more than was read. */
            truncated: boolean;
        };
        ReadReply: {
            contentBase64?: string | null;
            found: boolean;
        };
        Resources: {
            /**
             * Format: int64
             * @description Workspace quota, 1 to 16 777 216; enforced or refused.
             */
            diskMb?: number | null;
            /**
             * Format: int64
             * @description 256 to 16 384.
             */
            memoryMb?: number | null;
            /**
             * Format: int32
             * @description Processes and threads, 16 to 32 768.
             */
            pids?: number | null;
            /**
             * Format: int64
             * @description Size of `/tmp`, 1 to 65 536.
             */
            tmpMb?: number | null;
            /**
             * Format: int64
             * @description 1 to 8.
             */
            vcpus?: number | null;
        };
        RunnerStatsView: {
            /** Format: int64 */
            commandsEnded: number;
            /** Format: int64 */
            commandsRunning: number;
            /** Format: int64 */
            diskTotalBytes: number;
            /** Format: int64 */
            diskUsedBytes: number;
            /** Format: int64 */
            journalBytes: number;
            /** Format: int64 */
            processes: number;
            /** Format: int64 */
            readersOpen: number;
            /** Format: int64 */
            tunnelsOpen: number;
            /** Format: int64 */
            uptimeS: number;
        };
        /** @description Times are Unix times in milliseconds. */
        Sandbox: {
            busy: boolean;
            /** Format: int64 */
            commandsRunning: number;
            /** Format: int64 */
            createdAtMs: number;
            /**
             * Format: int64
             * @description When it will be stopped whatever it does.
             */
            endsAtMs?: number | null;
            engine: string;
            /**
             * Format: int64
             * @description When it will be stopped if nobody uses it; none while it is busy.
             */
            expiresAtMs?: number | null;
            id: string;
            /** Format: int64 */
            idleTtlMs: number;
            image: string;
            key: string;
            /** Format: int64 */
            lastActiveAtMs: number;
            limits: components["schemas"]["Limits"];
            /** @description `none` or `default`. */
            network: string;
            /** @description Ports that may be published. */
            ports: number[];
            published: components["schemas"]["Published"][];
            /** @description Why it is stopping, gone or failed. */
            reason?: string | null;
            runtime: string;
            /** @description `creating`, `running`, `paused`, `stopping`, `gone` or `failed`. */
            state: string;
            /** @description The kept workspace it has; none for one that ends with it. */
            workspace?: string | null;
        };
        SandboxList: {
            sandboxes: components["schemas"]["Sandbox"][];
        };
        /** @description Times are RFC 3339 in UTC. */
        Session: {
            /** @description The same for people. */
            acquire_detail?: string | null;
            /** @description `pool` or `cold`; only in the answer to a create. */
            acquire_source?: string | null;
            created_at: string;
            /**
             * @description Where its shell was after its last script; empty when nobody can say: the session has ended,
             *     or does not answer.
             */
            cwd: string;
            /** @description When it ends if nobody uses it: each use sets it to that moment plus the session's own TTL. */
            expires_at: string;
            id: string;
            /** @description As the caller wrote it. */
            image: string;
            last_activity: string;
            /** @description `running`, `destroying`, `destroyed`, `expired` or `crashed`. */
            status: string;
            workspace_id?: string | null;
        };
        /** @description An error of the sessions' routes. */
        SessionError: {
            /** @description `hint` says what to do next, `code` is Sandbank's own finer one. */
            details?: Record<string, never> | null;
            /** @description Stable; test this one. */
            error_code: string;
            /** @description A sentence for people. */
            message: string;
        };
        SessionStats: {
            /** Format: int64 */
            cpu_usage_usec: number;
            /** Format: int64 */
            memory_bytes: number;
            /** Format: int64 */
            memory_limit: number;
        };
        /** @description The shell that a script ran in. */
        Shell: {
            /** @description Where it was when the script ended. */
            cwd?: string | null;
            /** @description `bash`, or `sh` where there is no bash. */
            kind: string;
            name: string;
            /**
             * @description The one before it had died: directory and exported variables are as they were, all else is
             *     gone.
             */
            restarted: boolean;
        };
        /** @description `"TERM"`, `"SIGTERM"` or `15`. */
        Signal: number | string;
        SignalBody: {
            signal: components["schemas"]["Signal"];
            /** @description Also what the command left behind in other process groups and sessions. */
            tree?: boolean;
        };
        /** @description Only for the documentation; see [`read`]. */
        StartBody: {
            /** @description With `cmd`: must contain `-lc` and then the script. */
            args?: string[] | null;
            /** @description Program and arguments, instead of `cmd` and `args`. */
            argv?: string[] | null;
            /** @description sandboxd's form: must be `bash`. */
            cmd?: string | null;
            /** @description The caller's own id: the same one again attaches instead of running twice. */
            commandId?: string | null;
            /** @description Absolute, or relative to the workspace. */
            cwd?: string | null;
            env?: {
                [key: string]: string;
            } | null;
            /** @description With `shell`: errors come in the stream of the output, in the order they were written. */
            merged?: boolean | null;
            pty?: components["schemas"]["Pty"] | null;
            /** @description With `shell`: what it evaluates, instead of `argv`. */
            script?: string | null;
            /**
             * @description Name of a shell that remembers: directory, variables, functions and jobs of one script are
             *     there for the next. Made when it is first used.
             */
            shell?: string | null;
            /** @description `open` to feed it by `POST …/stdin`, or `null`. */
            stdin?: string | null;
            /**
             * Format: int64
             * @description With `cmd`: 1 000 to 300 000, default 30 000. With `argv`: any; none or 0 means no limit.
             */
            timeoutMs?: number | null;
        };
        StartReply: {
            /** @description True when a command with this id was there already. */
            attached: boolean;
            commandId: string;
            /** @description With `wait=true`: `{"kind": …}` */
            ending?: Record<string, never> | null;
            /**
             * Format: int32
             * @description With `wait=true`, as `wait` tells it.
             */
            exitCode?: number | null;
            shell?: components["schemas"]["Shell"] | null;
        };
        StatsView: {
            /** Format: int64 */
            cpuUsageUs: number;
            /** Format: int64 */
            diskBytes: number;
            /** Format: int64 */
            memoryBytes: number;
            /** Format: int64 */
            memoryPeakBytes: number;
            /** Format: int64 */
            oomKills: number;
            /** Format: int64 */
            pids: number;
            runner?: components["schemas"]["RunnerStatsView"] | null;
        };
        StdinReply: {
            closed: boolean;
            /**
             * Format: int64
             * @description Where the next body must start.
             */
            nextOffset: number;
        };
        Token: {
            /** Format: int64 */
            createdAtMs: number;
            name: string;
            /** Format: int64 */
            revokedAtMs?: number | null;
            scope: string;
        };
        TokenBody: {
            /**
             * @description Letters, digits, `.`, `_` and `-`, beginning with a letter or digit; unique among live
             *     tokens.
             */
            name: string;
            /** @description `admin`, `sandbox` or `read_only`. */
            scope: string;
        };
        TokenList: {
            tokens: components["schemas"]["Token"][];
        };
        /** @description Only for the documentation. */
        UploadForm: {
            /**
             * Format: binary
             * @description At most 100 of these and of `files`, 10 MiB in all.
             */
            file?: string | null;
            files?: string[] | null;
            /** @description The directory that they go to, `/workspace` when absent. */
            path?: string | null;
        };
        Uploaded: {
            ok: boolean;
            /** @description Absolute, in the order they came. */
            paths: string[];
        };
        WaitReply: {
            /** @description `{"kind": …}` */
            ending: Record<string, never>;
            /** Format: int32 */
            exitCode: number;
        };
        Workspace: {
            /**
             * Format: int64
             * @description What it takes on disk.
             */
            bytes: number;
            id: string;
        };
        WorkspaceEntry: {
            is_dir: boolean;
            name: string;
        };
        WorkspaceList: {
            workspaces: components["schemas"]["Workspace"][];
        };
        WorkspaceListing: {
            entries: components["schemas"]["WorkspaceEntry"][];
            /** @description There are more than the runner tells at once. */
            truncated: boolean;
        };
        WriteBody: {
            files?: components["schemas"]["WriteFile"][] | null;
        };
        WriteFile: {
            content_base64?: string | null;
            /** @description Relative to `/workspace`, or absolute below it. */
            path: string;
            /** @description Either this or `content_base64`. */
            text?: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    sessions_healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Healthz"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    daemon_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/openmetrics-text": string;
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    daemon_openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    daemon_doctor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Doctor"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    daemon_events: {
        parameters: {
            query?: {
                /** @description Only events numbered above this one; the header `Last-Event-ID` wins over it. */
                after?: number;
            };
            header?: {
                "last-event-id"?: number | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    daemon_health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    images_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageList"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    images_remove: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    images_import: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxList"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_create: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateReply"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_inspect: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sandbox"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CommandList"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_start: {
        parameters: {
            query?: {
                /** @description Answer when the command has ended, with its ending. */
                wait?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StartBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StartReply"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_inspect: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                commandId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Command"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_logs: {
        parameters: {
            query?: {
                /** @description Only records numbered above this one. */
                after?: number;
                /** @description Stay until the command has ended. */
                follow?: boolean;
                /** @description `base64` for the exact bytes. */
                encoding?: "utf8" | "base64";
                /** @description `records`, the only one there is. */
                format?: string;
            };
            header?: never;
            path: {
                id: string;
                commandId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_resize: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                commandId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Pty"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Command"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_signal: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                commandId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignalBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Command"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_write: {
        parameters: {
            query?: {
                /** @description Where in the whole input this body starts; what was accepted before is skipped. */
                offset?: number;
                /** @description Close stdin after this body. */
                eof?: boolean;
            };
            header?: never;
            path: {
                id: string;
                commandId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": number[];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StdinReply"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_wait: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                commandId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WaitReply"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    commands_kill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                commandId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_containment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Containment"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_download: {
        parameters: {
            query?: {
                /** @description Below the workspace. */
                path?: string;
            };
            header?: {
                range?: string | null;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": number[];
                };
            };
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": number[];
                };
            };
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_upload: {
        parameters: {
            query?: {
                /** @description Below the workspace. */
                path?: string;
                /** @description Permission bits in octal, like 0644. */
                mode?: string;
                /** @description Write into the existing file from here on, instead of replacing it. */
                offset?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": number[];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileStat"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_remove: {
        parameters: {
            query?: {
                /** @description Below the workspace. */
                path?: string;
                /** @description Also a directory with everything in it. */
                recursive?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_describe: {
        parameters: {
            query?: {
                /** @description Below the workspace. */
                path?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_list: {
        parameters: {
            query?: {
                /** @description Below the workspace. */
                path?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DirListing"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_mkdir: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MkdirBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileStat"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_rename: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MoveBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileStat"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_read: {
        parameters: {
            query?: {
                /** @description Below the workspace. */
                path?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadReply"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_stat: {
        parameters: {
            query?: {
                /** @description Below the workspace. */
                path?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileStat"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    files_write: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WriteBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    ports_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortList"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    ports_publish: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                port: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortReply"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    ports_unpublish: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                port: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_post_mortem: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PostMortemView"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_stats: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatsView"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_pause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sandboxes_stop: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    sessions_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"][];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_create: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateSession"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_inspect: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_exec: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Exec"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExecResult"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_exec_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Exec"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ExecEvent"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_read: {
        parameters: {
            query?: {
                /** @description Relative to `/workspace`, or absolute below it. */
                path?: string;
                /** @description 0 to 104 857 600; 0 or none is 10 485 760. */
                max_bytes?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadFile"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_upload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": components["schemas"]["UploadForm"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Uploaded"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_write: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WriteFile"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    sessions_stats: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionStats"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    tokens_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenList"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    tokens_create: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewToken"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    tokens_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    workspaces_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkspaceList"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    workspaces_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    workspaces_list_files: {
        parameters: {
            query?: {
                /** @description A directory of the workspace, itself when absent. */
                path?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkspaceListing"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    workspaces_read: {
        parameters: {
            query?: {
                /** @description Relative to `/workspace`, or absolute below it. */
                path?: string;
                /** @description 0 to 104 857 600; 0 or none is 10 485 760. */
                max_bytes?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadFile"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    workspaces_upload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": components["schemas"]["UploadForm"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Uploaded"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
    workspaces_write: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WriteFile"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionError"];
                };
            };
        };
    };
}
