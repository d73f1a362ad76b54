// Which version of the AI SDK these tests run with.

import { readFileSync } from "node:fs";

const { version } = JSON.parse(readFileSync(new URL("../node_modules/ai/package.json", import.meta.url), "utf8")) as { version: string };

export const VERSION = Number.parseInt(version, 10);
