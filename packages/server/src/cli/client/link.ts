import { parse } from '../arguments.ts'
import { CommandError, exitCodes, UsageError } from '../command.ts'
import { formatCount } from '../table.ts'
import { clientCommand } from './client-command.ts'
import { faultIn } from './explain-client-error.ts'
import { itemReference } from './item-reference.ts'
import { formatDuration, readDuration } from './time-options.ts'

export const link = clientCommand({
  help: `Usage: mediabucket link ID|URL … [--expires DURATION] [--variant NAME] [--download]

Prints a signed URL for each item. It needs no token until it expires, also in a private bucket. Everyone who has the URL can
use it; it works only unchanged. Items that do not exist are reported, and the exit code is ${exitCodes.notFound}.

Options:
  --expires DURATION  How long the links are valid: 30m, 12h, 7d. Default: 1h. The service limits it (MEDIABUCKET_MAX_LINK_LIFETIME).
  --variant NAME      Link to a smaller picture: thumb, medium or another size of the service.
  --download          Browsers save the file instead of showing it.`,

  read(args) {
    const { values, positionals } = parse('link', {
      args: [...args],
      allowPositionals: true,
      options: {
        expires: { type: 'string', default: '1h' },
        variant: { type: 'string' },
        download: { type: 'boolean', default: false },
      },
    })
    if (positionals.length === 0)
      throw new UsageError('link takes the IDs or URLs of items. See: mediabucket ls')
    return {
      references: positionals.map(itemReference),
      options: {
        expiresIn: readDuration('--expires', values.expires),
        variant: values.variant,
        download: values.download,
      },
    }
  },

  async run({ references, options }, { client, output, report, interrupted }) {
    const { urls, missing, expires_at } = await client
      .createLinks(references, { ...options, signal: interrupted })
      .catch((error: unknown) => {
        throw explainOption(error, options.variant) ?? error
      })
    await output.lines(references.map((reference) => urls.get(reference)).filter((url) => url !== undefined))
    if (urls.size > 0) report(`Valid until ${expires_at}`)
    for (const reference of missing) report(`mediabucket: ${reference}: There is no such item.`)
    if (missing.length > 0)
      throw new CommandError(
        `${missing.length} of ${formatCount(references.length, 'item')} ${missing.length === 1 ? 'does' : 'do'} not exist. See: mediabucket ls`,
        exitCodes.notFound,
      )
  },
})

/** The error of a lifetime or a variant that the service refuses, in terms of the option; null for any other error. */
function explainOption(error: unknown, variant: string | undefined): UsageError | null {
  const lifetime = faultIn(error, 'expires_in')
  if (lifetime !== null) return lifetimeError(lifetime)
  // Only the texts of the faults have the limit and the names.
  const [, names] = /: (.+);/.exec(faultIn(error, 'variant') ?? '') ?? []
  return names === undefined ? null : new UsageError(`--variant takes one of ${names}, not "${variant}"`)
}

function lifetimeError(detail: string): UsageError {
  const [, seconds] = / to (\d+)/.exec(detail) ?? []
  const limit = seconds === undefined ? '' : ` of ${formatDuration(Number(seconds))}`
  return new UsageError(
    `--expires is above the limit${limit} of the service. Use a shorter duration, or raise MEDIABUCKET_MAX_LINK_LIFETIME where the service runs`,
  )
}
