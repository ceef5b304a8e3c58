import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

interface Interpreter {
  readonly command: string
  readonly arguments: readonly string[]
  readonly extension: string
  /** The commands without which its blocks cannot run. */
  readonly needs: readonly string[]
}

/** What runs the blocks of a language. */
export const interpreters: Readonly<Record<string, Interpreter>> = {
  sh: { command: 'sh', arguments: ['-e'], extension: 'sh', needs: ['curl', 'jq'] },
  ts: { command: process.execPath, arguments: [], extension: 'ts', needs: [] },
  js: { command: process.execPath, arguments: [], extension: 'mjs', needs: [] },
  python: { command: 'python3', arguments: [], extension: 'py', needs: ['python3'] },
  php: { command: 'php', arguments: [], extension: 'php', needs: ['php'] },
}

/** Debian's packages for what may be missing. */
const packages: Readonly<Record<string, readonly string[]>> = {
  python3: ['python3'],
  php: ['php-cli'],
  curl: ['curl'],
  jq: ['jq'],
}

const runs = (command: string): boolean => {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore', timeout: 10_000 })
    return true
  } catch {
    return false
  }
}

/** Whether the command runs; root on Debian gets what is missing. */
export function has(command: string): boolean {
  if (runs(command)) return true
  const wanted = packages[command]
  if (!wanted || process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return false
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    execFileSync('apt-get', ['update', '-q'], { stdio: 'ignore', env })
    execFileSync('apt-get', ['install', '-qy', '--no-install-recommends', ...wanted], {
      stdio: 'ignore',
      env,
    })
  } catch {
    return false
  }
  return runs(command)
}
