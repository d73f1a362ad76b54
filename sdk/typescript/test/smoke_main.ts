// Runs the smoke in the runtime that runs this file.

import { smoke } from "./smoke.js";

const [url, token] = [process.env.SANDBANK_URL ?? "", process.env.SANDBANK_TOKEN ?? ""];
console.log(await smoke(url, token));
