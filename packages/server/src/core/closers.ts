/** The resources that a service releases when it stops. */
export interface Closers {
  add(what: string, close: () => unknown): void
  /**
   * Runs every closer once, the last one added first. A closer that throws does not skip the others; throws
   * AggregateError at the end.
   */
  closeAll(): Promise<void>
}

/** `onFailure` receives each error of a closer as it happens. */
export function createClosers(onFailure: (what: string, error: unknown) => void): Closers {
  const closers: { readonly what: string; readonly close: () => unknown }[] = []
  return {
    add(what, close) {
      closers.push({ what, close })
    },

    async closeAll() {
      const errors: unknown[] = []
      for (const { what, close } of closers.splice(0).reverse()) {
        try {
          await close()
        } catch (error) {
          onFailure(what, error)
          errors.push(error)
        }
      }
      if (errors.length > 0) throw new AggregateError(errors, 'the service did not stop cleanly')
    },
  }
}
