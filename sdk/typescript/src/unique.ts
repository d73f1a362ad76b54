// Ids that nobody else has. `crypto.randomUUID` is missing on pages without https.

export function uniqueId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `sdk-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
