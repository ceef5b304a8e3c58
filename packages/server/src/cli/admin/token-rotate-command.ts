import { CommandError, parse, UsageError } from '@mediabucket/cli/command'
import { defaultOverlap, maxOverlap } from '../../core/token-rules.ts'
import { administrationCommand } from './administration.ts'
import { type ListedToken, withTokens } from './token-administration.ts'
import { findToken, readDuration, requireWord, tokenText } from './token-commands.ts'

export const tokenRotate = administrationCommand({
  help: `Usage: mediabucket token rotate ID|NAME [--bucket NAME] [--overlap DURATION] [--expires DURATION]

Creates a token with the name, the note, the scopes and the limits of this one, and prints it, and nothing else, on standard output. It is
not shown again. The replaced token remains valid for the overlap, unless it expires earlier: time to give the new one to the programs that
use it. Works while the service is running.

ID is the first column of \`mediabucket token list\` (tok_… or svc_…). NAME is the name of an active token; it must be unique.

Options:
  --bucket NAME       Search only the tokens of this bucket.
  --overlap DURATION  How long the replaced token remains valid, at most 30d. Default: 24h. To end it at once, revoke it.
  --expires DURATION  How long the new token is valid. Default: as long as the replaced one was when it was created.`,

  async run(args, context) {
    const { values, positionals } = parse('token rotate', {
      args: [...args],
      allowPositionals: true,
      options: { bucket: { type: 'string' }, overlap: { type: 'string' }, expires: { type: 'string' } },
    })
    const word = requireWord('token rotate', positionals)
    const overlap = values.overlap === undefined ? defaultOverlap * 1000 : readOverlap(values.overlap)
    const lifetime = values.expires === undefined ? null : readDuration(values.expires, '--expires')
    const now = Date.now()
    await withTokens(context, values.bucket, async (tokens) => {
      const replaced = findToken(
        await tokens.list(),
        word,
        values.bucket,
        ({ revoked_at }) => revoked_at === null,
      )
      if (replaced.id.startsWith('usr_'))
        throw new CommandError(`${replaced.id} is a user of the issuer, which has no token to be replaced.`)
      const issued = await tokens.rotate(replaced, { overlap, expiresAt: expiryOf(replaced, lifetime, now) })
      if (issued === null)
        throw new CommandError(
          `${replaced.id} has expired, has been revoked or has been replaced before. A token has one successor, which can be replaced in turn. See: mediabucket token list`,
        )
      const until = new Date(Math.min(expiryTime(replaced) ?? Number.POSITIVE_INFINITY, now + overlap))
      context.report(
        `Created the token ${issued.id}, which replaces ${tokenText(replaced)}. The replaced one is valid until ${until.toISOString()}. The new one is shown only now:`,
      )
      context.print(issued.token)
    })
  },
})

/** Milliseconds. Throws UsageError. */
function readOverlap(text: string): number {
  const overlap = readDuration(text, '--overlap')
  if (overlap > maxOverlap * 1000) throw new UsageError('--overlap takes at most 30d')
  return overlap
}

const expiryTime = ({ expires_at: time }: Pick<ListedToken, 'expires_at'>): number | null =>
  time === null ? null : Date.parse(time)

/** When the successor expires: after this lifetime, or that of the replaced token. */
function expiryOf(replaced: ListedToken, lifetime: number | null, now: number): number | null {
  const expiry = expiryTime(replaced)
  const replacedLifetime = expiry === null ? null : expiry - Date.parse(replaced.created_at)
  const chosen = lifetime ?? replacedLifetime
  return chosen === null ? null : now + chosen
}
