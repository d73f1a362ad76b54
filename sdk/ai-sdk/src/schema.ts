// The server's JSON Schemas, checked before a call: the AI SDK then tells the model what is wrong, and
// can repair it. Only what these schemas are made of is checked here; the server checks everything.

import { jsonSchema, type Schema } from "ai";
import { isObject } from "./error.js";

type Node = Record<string, unknown>;

export function inputSchema<INPUT>(schema: Node): Schema<INPUT> {
  return jsonSchema<INPUT>(schema, {
    validate(value) {
      const wrong = complaints(schema, value);
      if (wrong.length === 0) return { success: true, value: value as INPUT };
      return { success: false, error: new TypeError(wrong.join("; ")) };
    },
  });
}

/** What is wrong with a value, if anything. */
export function complaints(schema: Node, value: unknown): string[] {
  if (!isObject(value)) return ["the input must be an object"];
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const missing = required.filter((name) => value[name] === undefined).map((name) => `${name} is missing`);
  const others = schema.additionalProperties === false ? Object.keys(value).filter((name) => !Object.hasOwn(properties, name)) : [];
  const wrong = Object.entries(properties).flatMap(([name, field]) => {
    const expected = value[name] === undefined || !isObject(field) ? undefined : expectedOf(field, value[name]);
    return expected === undefined ? [] : [`${name} must be ${expected}`];
  });
  return [...missing, ...wrong, ...others.map((name) => `${JSON.stringify(name)} is not one of its fields`)];
}

/** What a field must be, where its value is something else. */
function expectedOf(field: Node, value: unknown): string | undefined {
  const limit = (name: string, otherwise: number) => (typeof field[name] === "number" ? (field[name] as number) : otherwise);
  switch (field.type) {
    case "string": {
      const [min, max] = [limit("minLength", 0), limit("maxLength", Infinity)];
      if (typeof value === "string" && hasLength(value, min, max)) return undefined;
      return `a text of ${min} to ${max} characters`;
    }
    case "integer": {
      const [min, max] = [limit("minimum", -Infinity), limit("maximum", Infinity)];
      if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return undefined;
      return `a whole number from ${min} to ${max}`;
    }
    case "boolean":
      return typeof value === "boolean" ? undefined : "true or false";
    default:
      return undefined;
  }
}

/** In characters, of which JavaScript counts some twice; those of a long text are not counted in vain. */
function hasLength(text: string, min: number, max: number): boolean {
  if (text.length <= max && text.length >= 2 * min) return true;
  let count = 0;
  for (const _ of text) count += 1;
  return count >= min && count <= max;
}
