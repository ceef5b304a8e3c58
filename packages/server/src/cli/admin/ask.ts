import { renderUnicodeCompact } from 'uqr'
import { issueToken } from '../../access/tokens.ts'
import { isTokenName, tokenNameRule } from '../../core/tokens.ts'
import { defaultBaseUrl } from '../../service/config.ts'
import { type Command, CommandError, parse, UsageError } from '../command.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'
import { limitOptions, limitOptionsHelp, limitsOf, limitTexts, noteOf } from './token-limits.ts'
import { readExpiry } from './tokens.ts'

/** The limits of a link for which none are given. */
const defaultLimits = { maxItems: 100, maxBytes: null, maxFileSize: null, types: null, itemDays: null }

export const ask: Command = {
  help: `Usage: mediabucket ask TITLE --bucket NAME [--expires DURATION] [LIMITS]

Prints an upload link: people who open it send files to the bucket, without an account, and see nothing of the bucket. It begins
with MEDIABUCKET_BASE_URL. On a terminal, its QR code is shown too. It is not shown again. \`mediabucket token list\` shows what arrived, \`mediabucket token revoke\` ends it.

Options:
  --bucket NAME       The bucket; it must exist.
  --expires DURATION  How long the link works: 12h, 30d, 52w. Default: 30d.

Limits of what can be uploaded; without any, ${defaultLimits.maxItems} files:
${limitOptionsHelp}`,

  async run(args, { config, print, report }) {
    const { values, positionals } = parse('ask', {
      args: [...args],
      allowPositionals: true,
      options: { bucket: { type: 'string' }, expires: { type: 'string', default: '30d' }, ...limitOptions },
    })
    const [title, ...more] = positionals
    if (title === undefined || title.trim() === '' || more.length > 0)
      throw new UsageError(
        'ask takes one TITLE, such as "Photos of the festival". See: mediabucket ask --help',
      )
    if (!isTokenName(title)) throw new UsageError(`TITLE is not valid. ${tokenNameRule}`)
    const { bucket } = values
    if (bucket === undefined) throw new UsageError('ask needs --bucket NAME. See: mediabucket ask --help')
    const now = Date.now()
    const request = {
      ...{ bucket, name: title.trim(), scopes: ['media:write'] as const, note: noteOf(values) },
      ...{ limits: limitsOf(values) ?? defaultLimits, expiresAt: now + readExpiry(values.expires), now },
    }
    if (!config.gallery)
      throw new CommandError(
        'the page of upload links is part of the gallery, which MEDIABUCKET_GALLERY=off turns off',
      )
    const { token, id } = await withCatalog(config, async (catalog) => {
      if ((await catalog.bucketNamed(bucket)) === null) throw unknownBucket(bucket)
      return issueToken(catalog, request)
    })
    report(
      `Created the upload link ${id} for the bucket "${bucket}" with the limits ${limitTexts(request.limits).join('; ')}. It is shown only now:`,
    )
    const link = `${config.baseUrl ?? defaultBaseUrl(config.host, config.port)}/upload#${token}`
    if (process.stderr.isTTY) report(...renderUnicodeCompact(link, { border: 2 }).split('\n'))
    print(link)
  },
}
