import { connectService, withService } from '@mediabucket/cli/client-command'
import { connectionHelp, readClientSettings, takeConnectionOptions } from '@mediabucket/cli/client-settings'
import { CommandError, type CommandOutput, parse, UsageError } from '@mediabucket/cli/command'
import { renderUnicodeCompact } from 'uqr'
import { issueToken } from '../../access/token-operations.ts'
import type { TokenLimits } from '../../core/quotas.ts'
import { isTokenName, tokenNameRule } from '../../core/token-rules.ts'
import { type Config, defaultBaseUrl } from '../../service/config.ts'
import type { Command } from '../command.ts'
import { limitOptions, limitOptionsHelp, limitsOf, limitTexts, noteOf } from './limit-options.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'
import { sentToken } from './token-administration.ts'
import { readDuration } from './token-commands.ts'

/** The files that a link accepts if --max-items is not given. */
const defaultFiles = 100

const unlimited = { maxItems: null, maxBytes: null, maxFileSize: null, types: null, itemDays: null }

export const ask: Command = {
  help: `Usage: mediabucket ask TITLE [--bucket NAME] [--expires DURATION] [LIMITS]

Prints an upload link: people who open it send files to the bucket, without an account, and see nothing of the bucket. On a
terminal, its QR code is shown too. It is not shown again. \`mediabucket token list\` shows what arrived, \`mediabucket token revoke\`
ends it.

With --bucket it works where the service runs. Otherwise, and with the options of a service, it creates the link over HTTP, with a token that has
the scopes tokens:manage and media:write: for its bucket, or with a service token for that of --bucket. The link begins with the MEDIABUCKET_BASE_URL of the service; if that is not set, over HTTP with the
URL of the service that is used.

Options:
  --bucket NAME       The bucket; it must exist.
  --expires DURATION  How long the link works: 12h, 30d, 52w. Default: 30d.

Limits of what can be uploaded; without --max-items, ${defaultFiles} files:
${limitOptionsHelp}

${connectionHelp}`,

  async run(args, context) {
    const { connection, rest } = takeConnectionOptions(args)
    const { values, positionals } = parse('ask', {
      args: [...rest],
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
    const given = limitsOf(values) ?? unlimited
    const limits = { ...given, maxItems: given.maxItems ?? defaultFiles }
    const request = {
      ...{ name: title.trim(), note: noteOf(values), limits },
      expiresAt: Date.now() + readDuration(values.expires, '--expires'),
    }
    if (bucket === undefined || Object.keys(connection).length > 0) {
      const settings = readClientSettings(connection)
      return await withService(settings, null, async ({ interrupted: signal }) => {
        const { client, service } = await connectService(settings, context.report, signal)
        const { tokens } = bucket === undefined ? client : service.bucket(bucket)
        const page = await uploadPageOf(settings.url, signal)
        const created = await tokens.create(sentToken({ ...request, scopes: ['media:write'] }))
        show({ ...created, limits: request.limits, page }, context)
      })
    }
    const issued = await createHere(context.config, bucket, request)
    show({ ...issued, bucket, limits: request.limits }, context)
  },
}

interface LinkRequest {
  readonly name: string
  readonly note: string | null
  readonly limits: TokenLimits
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** Creates a link where the service runs. */
async function createHere(config: Config, bucket: string, request: LinkRequest) {
  if (!config.gallery) throw withoutGallery()
  const { token, id } = await withCatalog(config, async (catalog) => {
    if ((await catalog.findBucketNamed(bucket)) === null) throw unknownBucket(bucket)
    return issueToken(catalog, { ...request, bucket, scopes: ['media:write'], now: Date.now() })
  })
  return { token, id, page: `${config.baseUrl ?? defaultBaseUrl(config.host, config.port)}/upload` }
}

const withoutGallery = () =>
  new CommandError('the page of upload links is part of the gallery, which MEDIABUCKET_GALLERY=off turns off')

/** Milliseconds. */
const pageTimeout = 30_000

/**
 * The URL of the page of upload links, as the service states it: others may not reach it at the address that is used here. Throws CommandError
 * if the service has no such page.
 */
async function uploadPageOf(service: string, signal: AbortSignal): Promise<string> {
  const url = `${service.replace(/(\/(api|v1)\/media)?\/*$/, '')}/upload`
  try {
    const response = await fetch(url, {
      method: 'HEAD',
      signal: AbortSignal.any([signal, AbortSignal.timeout(pageTimeout)]),
    })
    if (response.status === 404) throw withoutGallery()
    const [, stated] = /<([^>]+)>; rel="canonical"/.exec(response.headers.get('link') ?? '') ?? []
    return stated ?? url
  } catch (error) {
    if (error instanceof CommandError) throw error
    // The creation of the link reports why there is no connection.
    return url
  }
}

interface NewLink {
  readonly id: string
  readonly token: string
  readonly bucket: string
  readonly limits: TokenLimits
  /** The URL of the page of upload links. */
  readonly page: string
}

function show({ id, token, bucket, limits, page }: NewLink, { print, report }: CommandOutput): void {
  report(
    `Created the upload link ${id} for the bucket "${bucket}" with the limits ${limitTexts(limits).join('; ')}. It is shown only now:`,
  )
  const link = `${page}#${token}`
  if (process.stderr.isTTY) report(...renderUnicodeCompact(link, { border: 2 }).split('\n'))
  print(link)
}
