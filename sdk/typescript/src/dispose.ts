// `await using` where the runtime does not have it yet: compilers look for the same symbol.

export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as never);
