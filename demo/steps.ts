/** Prints the steps of a demonstration, and what they found. */
export interface Steps {
  /** Prints what is done, runs it, and prints how long it took. */
  run<T>(what: string, work: () => Promise<T>): Promise<T>
  note(text: string): void
  /** Prints a result. A failed one fails the demonstration. */
  expect(what: string, holds: boolean): void
  readonly failed: () => readonly string[]
}

export function createSteps(print: (text: string) => void): Steps {
  const failed: string[] = []
  const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`
  return {
    async run(what, work) {
      print(`→ ${what}`)
      const start = performance.now()
      const result = await work()
      print(`  done in ${seconds(start)}`)
      return result
    },
    note: (text) => print(`  ${text}`),
    expect(what, holds) {
      print(`  ${holds ? '✓' : '✗'} ${what}`)
      if (!holds) failed.push(what)
    },
    failed: () => failed,
  }
}
