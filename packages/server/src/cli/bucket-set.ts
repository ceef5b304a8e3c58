import { parseSize } from '../core/size.ts'
import { parse } from './arguments.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { withCatalog } from './open-catalog.ts'

export const bucketSet: Command = {
  summary: 'Limit what a bucket may hold.',
  help: `Usage: mediabucket bucket set NAME [--max-items N|none] [--max-bytes SIZE|none]

Works beside a running server; the next upload is held to it. What is in the bucket stays, even beyond the limits.

Options:
  --max-items N     The most items, or none for no limit.
  --max-bytes SIZE  The most bytes, such as 500MB, 10GB or 2GiB, or none for no limit.`,

  async run(args, { config, tell }) {
    const { values, positionals } = parse('bucket set', {
      args: [...args],
      allowPositionals: true,
      options: { 'max-items': { type: 'string' }, 'max-bytes': { type: 'string' } },
    })
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0)
      throw new UsageError('bucket set takes one NAME; see: mediabucket bucket list')
    const maxItems = limit('--max-items', values['max-items'], wholeNumber)
    const maxBytes = limit('--max-bytes', values['max-bytes'], parseSize)
    if (maxItems === undefined && maxBytes === undefined)
      throw new UsageError('bucket set needs --max-items, --max-bytes or both')
    const quota = {
      ...(maxItems === undefined ? {} : { maxItems }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
    }
    const known = await withCatalog(config, (catalog) => catalog.setQuota(name, quota))
    if (!known) throw new CommandError(`there is no bucket "${name}"; see: mediabucket bucket list`)
    const told = (text: number | null | undefined, unit: string) =>
      text === undefined ? [] : [text === null ? `any number of ${unit}` : `at most ${text} ${unit}`]
    tell(
      `The bucket "${name}" may hold ${[...told(maxItems, 'items'), ...told(maxBytes, 'bytes')].join(', ')}.`,
    )
  },
}

const wholeNumber = (text: string): number | null => {
  const value = /^(0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : null
}

/** Undefined where the option was not given, null for no limit. */
function limit(
  option: string,
  text: string | undefined,
  read: (text: string) => number | null,
): number | null | undefined {
  if (text === undefined) return undefined
  if (text === 'none') return null
  const value = read(text)
  if (value === null) throw new UsageError(`"${text}" is nothing that ${option} takes; see its --help`)
  return value
}
