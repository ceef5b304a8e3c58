import { CommandError, exitCodes, parse, readDuration, UsageError } from '@mediabucket/cli/command'
import { jsonLine, table } from '@mediabucket/cli/terminal'
import { signLinksOperation } from '../../access/signed-links.ts'
import { Fault } from '../../core/faults.ts'
import {
  defaultSecretOverlap,
  isWebhookId,
  maxBatch,
  maxSecretOverlap,
  maxWebhooks,
  parseWebhookUrl,
  webhookUrlRule,
} from '../../core/webhook-rules.ts'
import { urlSettings } from '../../service/bound-config.ts'
import type { Config } from '../../service/config.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import type { Webhook, WebhookSettings } from '../../storage/catalog/feed/webhooks.ts'
import {
  type ItemChangeKind,
  isItemChangeKind,
  itemChangeKinds,
} from '../../storage/catalog/items/item-changes.ts'
import { createPoster } from '../../webhooks/guarded-post.ts'
import {
  type DeliveryObject,
  refusalOfUrl,
  WebhookOperations,
  webhookObject,
} from '../../webhooks/webhook-operations.ts'
import type { Command } from '../command.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'

const kindNames = Object.keys(itemChangeKinds).filter(isItemChangeKind)

const settingOptions = {
  url: { type: 'string' },
  kinds: { type: 'string' },
  batch: { type: 'string' },
} as const

const settingHelp = `  --kinds KINDS  The kinds of changes that it delivers, separated by commas, or all. Each is one of:
                 ${kindNames.join(', ')}.
  --batch N      The most changes in one delivery, 1 to ${maxBatch}. With 1, each delivery is one change, and otherwise a list.`

/** Reads the options that are given. Throws UsageError. */
function readSettings(
  {
    url,
    kinds,
    batch,
  }: {
    readonly url?: string | undefined
    readonly kinds?: string | undefined
    readonly batch?: string | undefined
  },
  { webhookAllow }: Config,
): Partial<WebhookSettings> {
  return {
    ...(url !== undefined && { url: readUrl(url, webhookAllow) }),
    ...(kinds !== undefined && { kinds: readKinds(kinds) }),
    ...(batch !== undefined && { batch: readBatch(batch) }),
  }
}

function readUrl(text: string, allowed: readonly string[]): string {
  const url = parseWebhookUrl(text)
  if (url === null) throw new UsageError(`--url is not valid. It takes a${webhookUrlRule.slice(1)}`)
  const refusal = refusalOfUrl(url, allowed)
  if (refusal !== null) throw new UsageError(`The URL is not accepted. ${refusal}${ownSettingHint(refusal)}`)
  return url
}

/** People who have set the setting for the service only do not see why the command does not follow it. */
const ownSettingHint = (reason: string): string =>
  reason.includes('MEDIABUCKET_WEBHOOK_ALLOW')
    ? ' The command reads the setting from its own environment: set it as for the service, or use mediabucket --env-file FILE.'
    : ''

function readKinds(text: string): readonly ItemChangeKind[] {
  if (text === 'all') return []
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !isItemChangeKind(name))
  if (unknown !== undefined)
    throw new UsageError(
      `"${unknown}" is not a kind of changes. The kinds are ${kindNames.join(', ')}, or all.`,
    )
  return kindNames.filter((kind) => names.includes(kind))
}

function readBatch(text: string): number {
  const batch = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (batch >= 1 && batch <= maxBatch) return batch
  throw new UsageError(`--batch takes a number from 1 to ${maxBatch}, not "${text}"`)
}

/** Runs an operation on the webhook with this id. Throws CommandError if there is none. */
const withWebhook = <T>(
  config: Config,
  id: string,
  use: (parts: {
    readonly webhook: Webhook
    readonly catalog: Catalog
    readonly webhooks: WebhookOperations
  }) => Promise<T>,
): Promise<T> =>
  withCatalog(config, async (catalog) => {
    const webhook = isWebhookId(id) ? await catalog.findWebhook(id) : null
    if (webhook === null)
      throw new CommandError(`there is no webhook "${id}". See: mediabucket webhook list`, exitCodes.notFound)
    try {
      return await use({ webhook, catalog, webhooks: operationsOf(config, catalog) })
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'webhook-delivery-unknown') throw error
      throw new CommandError(`${error.message} See: mediabucket webhook deliveries ${id}`, exitCodes.notFound)
    }
  })

function operationsOf(config: Config, catalog: Catalog): WebhookOperations {
  const urls = urlSettings(config)
  const now = Date.now
  return new WebhookOperations({
    catalog,
    poster: createPoster({ allowed: config.webhookAllow }),
    urls,
    signLinks: signLinksOperation({ catalog, urls, now }),
    now,
  })
}

/** The one word of the arguments. Throws UsageError. */
function oneId(command: string, [id, ...more]: readonly string[]): string {
  if (id !== undefined && id !== '' && more.length === 0) return id
  throw new UsageError(`${command} takes one ID. See: mediabucket webhook list`)
}

export const webhookCreate: Command = {
  help: `Usage: mediabucket webhook create --bucket NAME --url URL [--kinds KINDS] [--batch N]

Creates a webhook, which delivers the changes of the bucket from now on. Prints its secret, and nothing else, on standard output. It is not
shown again. A bucket has at most ${maxWebhooks} webhooks. Works while the service is running.

Options:
  --bucket NAME  The bucket.
  --url URL      Where deliveries are sent, with http or https.
${settingHelp}`,

  async run(args, { config, print, report }) {
    const { values } = parse('webhook create', {
      args: [...args],
      options: { bucket: { type: 'string' }, ...settingOptions },
    })
    const { bucket: name } = values
    const { url, kinds = [], batch = 1 } = readSettings(values, config)
    if (name === undefined || url === undefined)
      throw new UsageError(
        'webhook create needs --bucket NAME and --url URL. See: mediabucket webhook create --help',
      )
    const { id, secret } = await withCatalog(config, async (catalog) => {
      const bucket = await catalog.findBucketNamed(name)
      if (bucket === null) throw unknownBucket(name)
      return operationsOf(config, catalog).create(bucket.id, { url, kinds, batch })
    })
    report(`Created the webhook ${id} of the bucket "${name}". Its secret is shown only now:`)
    print(secret)
  },
}

export const webhookList: Command = {
  help: `Usage: mediabucket webhook list [--bucket NAME] [--json]

Prints a table; its first column is the id of the webhook. STATE is on, off (switched off by somebody), gone (its receiver responded with
410) or failed (its deliveries have failed for three days). The header is printed on a terminal only.

Options:
  --bucket NAME  List only the webhooks of this bucket.
  --json         Print one JSON object per line.`,

  async run(args, { config, print, report }) {
    const { values } = parse('webhook list', {
      args: [...args],
      options: { bucket: { type: 'string' }, json: { type: 'boolean' } },
    })
    const { bucket: name } = values
    const webhooks = await withCatalog(config, async (catalog) => {
      if (name === undefined) return catalog.listWebhooks()
      const bucket = await catalog.findBucketNamed(name)
      if (bucket === null) throw unknownBucket(name)
      return catalog.listWebhooks(bucket.id)
    })
    if (values.json) {
      for (const webhook of webhooks) print(jsonLine({ ...webhookObject(webhook), bucket: webhook.bucket }))
      return
    }
    if (webhooks.length === 0)
      return report('There are no webhooks. Create one: mediabucket webhook create --bucket NAME --url URL')
    for (const line of table(webhookColumns, webhooks, { header: process.stdout.isTTY })) print(line)
  },
}

const timeOf = (time: number | null) => (time === null ? '-' : new Date(time).toISOString().slice(0, 19))

const webhookColumns = [
  { header: 'ID', cell: ({ id }: Webhook) => id },
  { header: 'BUCKET', cell: ({ bucket }: Webhook) => bucket },
  { header: 'STATE', cell: ({ state }: Webhook) => state },
  { header: 'FAILURES', cell: ({ failures }: Webhook) => `${failures}`, alignRight: true },
  {
    header: 'NEXT ATTEMPT',
    cell: ({ state, nextAttempt }: Webhook) => timeOf(state === 'on' ? nextAttempt : null),
  },
  { header: 'KINDS', cell: ({ kinds }: Webhook) => (kinds.length === 0 ? 'all' : kinds.join(',')) },
  { header: 'BATCH', cell: ({ batch }: Webhook) => `${batch}`, alignRight: true },
  { header: 'URL', cell: ({ url }: Webhook) => url },
]

export const webhookSet: Command = {
  help: `Usage: mediabucket webhook set ID [--url URL] [--kinds KINDS] [--batch N] [--state on|off] [--new-secret [--overlap DURATION]]

Works while the service is running. The next delivery follows at once, and continues after the last one that was delivered.

Options:
  --url URL           Where deliveries are sent, with http or https.
${settingHelp}
  --state on|off      Whether it delivers.
  --new-secret        Replace the secret, and print the new one on standard output.
  --overlap DURATION  How long the replaced secret signs too, such as 1h, 1d or 7d at most. Default: 1d.`,

  async run(args, { config, print, report }) {
    const { values, positionals } = parse('webhook set', {
      args: [...args],
      allowPositionals: true,
      options: {
        ...settingOptions,
        state: { type: 'string' },
        'new-secret': { type: 'boolean' },
        overlap: { type: 'string' },
      },
    })
    const id = oneId('webhook set', positionals)
    const { state } = values
    if (state !== undefined && state !== 'on' && state !== 'off')
      throw new UsageError(`--state takes on or off, not "${state}"`)
    const overlap =
      values.overlap === undefined ? defaultSecretOverlap : readDuration('--overlap', values.overlap)
    if (overlap > maxSecretOverlap) throw new UsageError('--overlap takes at most 7d')
    const settings: Parameters<WebhookOperations['set']>[2] = {
      ...readSettings(values, config),
      ...(state !== undefined && { state }),
    }
    const isChange = Object.keys(settings).length > 0
    if (!isChange && values['new-secret'] !== true)
      throw new UsageError(
        'webhook set needs --url, --kinds, --batch, --state or --new-secret. See: mediabucket webhook set --help',
      )
    await withWebhook(config, id, async ({ webhook: { bucketId }, webhooks }) => {
      if (isChange) {
        const webhook = await webhooks.set(bucketId, id, settings)
        report(`Changed the webhook ${id}, which is ${webhook.state}.`)
      }
      if (values['new-secret'] !== true) return
      const { secret } = await webhooks.rotate(bucketId, id, overlap * 1_000)
      report(`Replaced the secret of the webhook ${id}. The new one is shown only now:`)
      print(secret)
    })
  },
}

export const webhookDelete: Command = {
  help: `Usage: mediabucket webhook delete ID

Deletes the webhook with its deliveries. ID is the first column of \`mediabucket webhook list\`. Works while the service is running.`,

  async run(args, { config, report }) {
    const { positionals } = parse('webhook delete', { args: [...args], allowPositionals: true, options: {} })
    const id = oneId('webhook delete', positionals)
    await withWebhook(config, id, ({ webhook: { bucketId }, webhooks }) => webhooks.remove(bucketId, id))
    report(`Deleted the webhook ${id}.`)
  },
}

export const webhookTest: Command = {
  help: `Usage: mediabucket webhook test ID [--json]

Sends a message of the type webhook.test from this machine, also if the webhook is switched off, and prints what the receiver responded. Exit
code 1 if it was not delivered. If it was, a delivery that waits after a failure is repeated at once.

Options:
  --json  Print a JSON object.`,

  async run(args, { config, print, report }) {
    const { values, positionals } = parse('webhook test', {
      args: [...args],
      allowPositionals: true,
      options: { json: { type: 'boolean' } },
    })
    const id = oneId('webhook test', positionals)
    const { delivery, state } = await withWebhook(config, id, async ({ webhook, webhooks }) => ({
      delivery: await webhooks.test(webhook.bucketId, id),
      state: webhook.state,
    }))
    printDelivery(delivery, values.json === true, print)
    if (state !== 'on')
      report(`The webhook is ${state}, and delivers nothing until: mediabucket webhook set ${id} --state on`)
  },
}

export const webhookDeliveries: Command = {
  help: `Usage: mediabucket webhook deliveries ID [--json]

Prints the last 100 deliveries, latest first. The first column is the number of the delivery, for \`mediabucket webhook redeliver\`. The header
is printed on a terminal only.

Options:
  --json  Print one JSON object per line, with the beginning of the response.`,

  async run(args, { config, print, report }) {
    const { values, positionals } = parse('webhook deliveries', {
      args: [...args],
      allowPositionals: true,
      options: { json: { type: 'boolean' } },
    })
    const id = oneId('webhook deliveries', positionals)
    const deliveries = await withWebhook(config, id, ({ webhook: { bucketId }, webhooks }) =>
      webhooks.deliveries(bucketId, id),
    )
    if (values.json) {
      for (const delivery of deliveries) print(jsonLine(delivery))
      return
    }
    if (deliveries.length === 0) return report('There are no deliveries yet.')
    for (const line of table(deliveryColumns, deliveries, { header: process.stdout.isTTY })) print(line)
  },
}

const deliveryColumns = [
  { header: 'NUMBER', cell: ({ number }: DeliveryObject) => `${number}`, alignRight: true },
  { header: 'TIME', cell: ({ time }: DeliveryObject) => time },
  { header: 'TYPE', cell: ({ type }: DeliveryObject) => type },
  { header: 'CHANGES', cell: ({ changes }: DeliveryObject) => `${changes}`, alignRight: true },
  { header: 'STATUS', cell: ({ status }: DeliveryObject) => `${status ?? '-'}` },
  { header: 'MS', cell: ({ duration }: DeliveryObject) => `${duration}`, alignRight: true },
  { header: 'REASON', cell: ({ reason }: DeliveryObject) => reason ?? '' },
]

export const webhookRedeliver: Command = {
  help: `Usage: mediabucket webhook redeliver ID NUMBER [--json]

Sends the changes of a delivery again from this machine, with the same id and the items as they are now, and prints what the receiver
responded. Exit code 1 if it was not delivered. NUMBER is the first column of \`mediabucket webhook deliveries\`.

Options:
  --json  Print a JSON object.`,

  async run(args, { config, print }) {
    const { values, positionals } = parse('webhook redeliver', {
      args: [...args],
      allowPositionals: true,
      options: { json: { type: 'boolean' } },
    })
    const [id, number, ...more] = positionals
    if (id === undefined || number === undefined || more.length > 0 || !/^[1-9]\d{0,14}$/.test(number))
      throw new UsageError(
        'webhook redeliver takes one ID and one NUMBER. See: mediabucket webhook deliveries',
      )
    const delivery = await withWebhook(config, id, ({ webhook: { bucketId }, webhooks }) =>
      webhooks.redeliver(bucketId, id, Number(number)),
    )
    printDelivery(delivery, values.json === true, print)
  },
}

/** Throws CommandError if it was not delivered. */
function printDelivery(delivery: DeliveryObject, isJson: boolean, print: (line: string) => void): void {
  const { status, reason, duration, response } = delivery
  if (isJson) print(jsonLine(delivery))
  else if (status !== null) print(`${status} in ${duration} ms${response === '' ? '' : `: ${response}`}`)
  if (reason !== null) throw new CommandError(`the delivery failed. ${reason}${ownSettingHint(reason)}`)
}
