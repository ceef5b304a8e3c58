import { readFileSync } from 'node:fs'
import { ExplainedError, errorCode } from '../core/faults.ts'

/** Every invalid setting, reported together (docs/interface.md O7). */
export class ConfigError extends ExplainedError {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    const [first = ''] = faults
    super(faults.length === 1 ? first : `${faults.length} settings are wrong:\n  ${faults.join('\n  ')}`)
    this.faults = faults
  }
}

type Env = Record<string, string | undefined>

/**
 * Sets the variables of a file that systemd reads as `EnvironmentFile=`, so that a command has the settings of the service. Variables that
 * are set already stay, as with `node --env-file`. Throws ConfigError, without the values of the file, which can be secrets.
 */
export function loadEnvFile(path: string, env: Env = process.env): void {
  for (const [name, value] of Object.entries(parseEnvFile(path, readText(path)))) env[name] ??= value
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError([
      `The file of --env-file cannot be read: ${path} (${errorCode(error)}). Run the command as the user of the service, or as root.`,
    ])
  }
}

/** One assignment: a name, and quoted parts or an unquoted value, which a backslash at the end of a line continues. */
const assignment =
  /[^\S\n]*([A-Za-z_]\w*)[^\S\n]*=((?:[^\S\n]*(?:'[^']*'|"(?:\\[\s\S]|[^"\\])*"))*)[^\S\n]*((?:\\[\s\S]|[^\\\n])*)(?:\n|$)/y
const blankOrComment = /[^\S\n]*(?:[#;](?:\\[\s\S]|[^\\\n])*)?(?:\n|$)/y

/** Reads the syntax of systemd.exec(5), `EnvironmentFile=`. `path` is for messages. Throws ConfigError. */
export function parseEnvFile(path: string, text: string): Record<string, string> {
  const values: Record<string, string> = {}
  const source = text.replaceAll('\r\n', '\n')
  for (let at = 0; at < source.length; ) {
    blankOrComment.lastIndex = at
    assignment.lastIndex = at
    const [skipped] = blankOrComment.exec(source) ?? []
    if (skipped !== undefined) {
      at += skipped.length
      continue
    }
    const [whole, name, quoted = '', rest = ''] = assignment.exec(source) ?? []
    if (whole === undefined || name === undefined || (quoted === '' && /^["']/.test(rest)))
      throw new ConfigError([
        `Line ${source.slice(0, at).split('\n').length} of ${path} is not NAME=value. A value with spaces may be in quotes.`,
      ])
    values[name] = unquote(quoted) + unescaped(rest)
    at += whole.length
  }
  return values
}

/** Adjacent quoted parts are joined. */
const unquote = (parts: string): string =>
  [...parts.matchAll(/'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"/g)]
    .map(([, single, double = '']) => single ?? double.replace(/\\(["\\`$])|\\\n/g, '$1'))
    .join('')

/** Spaces at the end are removed, unless they are escaped. */
const unescaped = (text: string): string =>
  text
    .replace(/((?:^|[^\\])(?:\\\\)*)\s+$/, '$1')
    .replace(/\\([\s\S])/g, (_, escaped: string) => (escaped === '\n' ? '' : escaped))
