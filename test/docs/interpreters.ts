interface Interpreter {
  readonly command: string
  readonly arguments: readonly string[]
  readonly extension: string
  /** The commands without which its blocks cannot run. */
  readonly needs: readonly string[]
}

/** The interpreter of each language. */
export const interpreters: Readonly<Record<string, Interpreter>> = {
  sh: { command: 'sh', arguments: ['-e'], extension: 'sh', needs: ['curl', 'jq'] },
  ts: { command: process.execPath, arguments: [], extension: 'ts', needs: [] },
  js: { command: process.execPath, arguments: [], extension: 'mjs', needs: [] },
  python: { command: 'python3', arguments: [], extension: 'py', needs: ['python3'] },
  php: { command: 'php', arguments: [], extension: 'php', needs: ['php'] },
}
