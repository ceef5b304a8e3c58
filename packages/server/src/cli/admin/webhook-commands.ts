import { CommandError, parse, readDuration, UsageError } from '@mediabucket/cli/command'
import { jsonLine, table } from '@mediabucket/cli/terminal'
import type { WebhookChanges, WebhookDelivery } from '@mediabucket/client'
import {
  defaultSecretOverlap,
  maxBatch,
  maxSecretOverlap,
  maxWebhooks,
  parseWebhookUrl,
  webhookUrlRule,
} from '../../core/webhook-rules.ts'
import type { WebhookSettings } from '../../storage/catalog/feed/webhooks.ts'
import {
  type ItemChangeKind,
  isItemChangeKind,
  itemChangeKinds,
} from '../../storage/catalog/items/item-changes.ts'
import { refusalOfUrl } from '../../webhooks/webhook-operations.ts'
import {
  type AdministrationContext,
  administrationCommand,
  connectionText,
  isRemote,
} from './administration.ts'
import { type ListedWebhook, withWebhooks } from './webhook-administration.ts'

const kindNames = Object.keys(itemChangeKinds).filter(isItemChangeKind)

const settingOptions = {
  to: { type: 'string' },
  kinds: { type: 'string' },
  batch: { type: 'string' },
} as const

const settingHelp = `  --kinds KINDS  The kinds of changes that it delivers, separated by commas, or all. Each is one of:
                 ${kindNames.join(', ')}.
  --batch N      The most changes in one delivery, 1 to ${maxBatch}. With 1, each delivery is one change, and otherwise a list.`

/** Reads the options that are given. Throws UsageError. */
function readSettings(
  {
    to,
    kinds,
    batch,
  }: {
    readonly to?: string | undefined
    readonly kinds?: string | undefined
    readonly batch?: string | undefined
  },
  context: AdministrationContext,
): Partial<WebhookSettings> {
  return {
    ...(to !== undefined && { url: readUrl(to, context) }),
    ...(kinds !== undefined && { kinds: readKinds(kinds) }),
    ...(batch !== undefined && { batch: readBatch(batch) }),
  }
}

function readUrl(text: string, context: AdministrationContext): string {
  const url = parseWebhookUrl(text)
  if (url === null) throw new UsageError(`--to is not valid. It takes a${webhookUrlRule.slice(1)}`)
  // Over HTTP, the service knows which addresses it may call.
  const refusal = isRemote(context) ? null : refusalOfUrl(url, context.config.webhookAllow)
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

const bucketOption = { bucket: { type: 'string' } } as const

const bucketHelp = '  --bucket NAME  The bucket of the webhook: needed over HTTP with a service token.'

/** The one word of the arguments. Throws UsageError. */
function oneId(command: string, [id, ...more]: readonly string[]): string {
  if (id !== undefined && id !== '' && more.length === 0) return id
  throw new UsageError(`${command} takes one ID. See: mediabucket webhook list`)
}

export const webhookCreate = administrationCommand({
  help: `Usage: mediabucket webhook create --bucket NAME --to URL [--kinds KINDS] [--batch N]

Creates a webhook, which delivers the changes of the bucket from now on. Prints its secret, and nothing else, on standard output. It is not
shown again. A bucket has at most ${maxWebhooks} webhooks. Works while the service is running.

Options:
  --bucket NAME  The bucket; over HTTP, by default that of the token.
  --to URL       Where deliveries are sent, with http or https.
${settingHelp}`,

  async run(args, context) {
    const { values } = parse('webhook create', {
      args: [...args],
      options: { ...bucketOption, ...settingOptions },
    })
    const { bucket } = values
    const { url, kinds = [], batch = 1 } = readSettings(values, context)
    if ((bucket === undefined && !isRemote(context)) || url === undefined)
      throw new UsageError(
        'webhook create needs --bucket NAME and --to URL. See: mediabucket webhook create --help',
      )
    await withWebhooks(context, bucket, async (webhooks) => {
      const { id, secret } = await webhooks.create({ url, kinds, batch })
      const owner = bucket === undefined ? '' : ` of the bucket "${bucket}"`
      context.report(`Created the webhook ${id}${owner}. Its secret is shown only now:`)
      context.print(secret)
    })
  },
})

export const webhookList = administrationCommand({
  help: `Usage: mediabucket webhook list [--bucket NAME] [--json]

Prints a table; its first column is the id of the webhook. STATE is on, off (switched off by somebody), gone (its receiver responded with
410) or failed (its deliveries have failed for three days). The header is printed on a terminal only.

Options:
  --bucket NAME  List only the webhooks of this bucket.
  --json         Print one JSON object per line.`,

  async run(args, context) {
    const { print, report } = context
    const { values } = parse('webhook list', {
      args: [...args],
      options: { ...bucketOption, json: { type: 'boolean' } },
    })
    await withWebhooks(context, values.bucket, async (webhooks) => {
      const listed = await webhooks.list()
      if (values.json) for (const webhook of listed) print(jsonLine(webhook))
      else if (listed.length === 0)
        report(
          `There are no webhooks. Create one: mediabucket webhook create --bucket NAME --to URL${connectionText(context)}`,
        )
      else for (const line of table(webhookColumns, listed, { header: process.stdout.isTTY })) print(line)
    })
  },
})

const webhookColumns = [
  { header: 'ID', cell: ({ id }: ListedWebhook) => id },
  { header: 'BUCKET', cell: ({ bucket }: ListedWebhook) => bucket },
  { header: 'STATE', cell: ({ state }: ListedWebhook) => state },
  { header: 'FAILURES', cell: ({ failures }: ListedWebhook) => `${failures}`, alignRight: true },
  { header: 'NEXT ATTEMPT', cell: ({ next_attempt_at: next }: ListedWebhook) => next?.slice(0, 19) ?? '-' },
  { header: 'KINDS', cell: ({ kinds }: ListedWebhook) => (kinds.length === 0 ? 'all' : kinds.join(',')) },
  { header: 'BATCH', cell: ({ batch }: ListedWebhook) => `${batch}`, alignRight: true },
  { header: 'URL', cell: ({ url }: ListedWebhook) => url },
]

export const webhookSet = administrationCommand({
  help: `Usage: mediabucket webhook set ID [--to URL] [--kinds KINDS] [--batch N] [--state on|off] [--new-secret [--overlap DURATION]]
                                 [--bucket NAME]

Works while the service is running. The next delivery follows at once, and continues after the last one that was delivered.

Options:
  --to URL            Where deliveries are sent, with http or https.
${settingHelp}
  --state on|off      Whether it delivers.
  --new-secret        Replace the secret, and print the new one on standard output.
  --overlap DURATION  How long the replaced secret signs too, such as 1h, 1d or 7d at most. Default: 1d.
${bucketHelp}`,

  async run(args, context) {
    const { print, report } = context
    const { values, positionals } = parse('webhook set', {
      args: [...args],
      allowPositionals: true,
      options: {
        ...bucketOption,
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
    const settings: WebhookChanges = {
      ...readSettings(values, context),
      ...(state !== undefined && { state }),
    }
    const isWrite = Object.keys(settings).length > 0
    if (!isWrite && values['new-secret'] !== true)
      throw new UsageError(
        'webhook set needs --to, --kinds, --batch, --state or --new-secret. See: mediabucket webhook set --help',
      )
    await withWebhooks(context, values.bucket, async (webhooks) => {
      if (isWrite) {
        const webhook = await webhooks.update(id, settings)
        report(`Changed the webhook ${id}, which is ${webhook.state}.`)
      }
      if (values['new-secret'] !== true) return
      const { secret } = await webhooks.rotate(id, { overlapSeconds: overlap })
      report(`Replaced the secret of the webhook ${id}. The new one is shown only now:`)
      print(secret)
    })
  },
})

export const webhookDelete = administrationCommand({
  help: `Usage: mediabucket webhook delete ID [--bucket NAME]

Deletes the webhook with its deliveries. ID is the first column of \`mediabucket webhook list\`. Works while the service is running.

Options:
${bucketHelp}`,

  async run(args, context) {
    const { values, positionals } = parse('webhook delete', {
      args: [...args],
      allowPositionals: true,
      options: bucketOption,
    })
    const id = oneId('webhook delete', positionals)
    await withWebhooks(context, values.bucket, async (webhooks) => {
      await webhooks.delete(id)
      context.report(`Deleted the webhook ${id}.`)
    })
  },
})

export const webhookTest = administrationCommand({
  help: `Usage: mediabucket webhook test ID [--bucket NAME] [--json]

Sends a message of the type webhook.test from this machine, or over HTTP from the service, also if the webhook is switched off, and prints what the
receiver responded. Exit code 1 if it was not delivered. If it was, a delivery that waits after a failure is repeated at once.

Options:
${bucketHelp}
  --json         Print a JSON object.`,

  async run(args, context) {
    const { values, positionals } = parse('webhook test', {
      args: [...args],
      allowPositionals: true,
      options: { ...bucketOption, json: { type: 'boolean' } },
    })
    const id = oneId('webhook test', positionals)
    await withWebhooks(context, values.bucket, async (webhooks) => {
      const delivery = await webhooks.test(id)
      printDelivery(delivery, values.json === true, context.print)
      const { state = 'on' } = (await webhooks.list()).find((webhook) => webhook.id === id) ?? {}
      if (state !== 'on')
        context.report(
          `The webhook is ${state}, and delivers nothing until: mediabucket webhook set ${id} --state on${connectionText(context)}`,
        )
    })
  },
})

export const webhookDeliveries = administrationCommand({
  help: `Usage: mediabucket webhook deliveries ID [--bucket NAME] [--json]

Prints the last 100 deliveries, latest first. The first column is the number of the delivery, for \`mediabucket webhook redeliver\`. The header
is printed on a terminal only.

Options:
${bucketHelp}
  --json         Print one JSON object per line, with the beginning of the response.`,

  async run(args, context) {
    const { print, report } = context
    const { values, positionals } = parse('webhook deliveries', {
      args: [...args],
      allowPositionals: true,
      options: { ...bucketOption, json: { type: 'boolean' } },
    })
    const id = oneId('webhook deliveries', positionals)
    await withWebhooks(context, values.bucket, async (webhooks) => {
      const deliveries = await webhooks.deliveries(id)
      if (values.json) for (const delivery of deliveries) print(jsonLine(delivery))
      else if (deliveries.length === 0) report('There are no deliveries yet.')
      else
        for (const line of table(deliveryColumns, deliveries, { header: process.stdout.isTTY })) print(line)
    })
  },
})

const deliveryColumns = [
  { header: 'NUMBER', cell: ({ number }: WebhookDelivery) => `${number}`, alignRight: true },
  { header: 'TIME', cell: ({ time }: WebhookDelivery) => time },
  { header: 'TYPE', cell: ({ type }: WebhookDelivery) => type },
  { header: 'CHANGES', cell: ({ changes }: WebhookDelivery) => `${changes}`, alignRight: true },
  { header: 'STATUS', cell: ({ status }: WebhookDelivery) => `${status ?? '-'}` },
  { header: 'MS', cell: ({ duration }: WebhookDelivery) => `${duration}`, alignRight: true },
  { header: 'REASON', cell: ({ reason }: WebhookDelivery) => reason ?? '' },
]

export const webhookRedeliver = administrationCommand({
  help: `Usage: mediabucket webhook redeliver ID NUMBER [--bucket NAME] [--json]

Sends the changes of a delivery again from this machine, or over HTTP from the service, with the same id and the items as they are now, and prints what
the receiver responded. Exit code 1 if it was not delivered. NUMBER is the first column of \`mediabucket webhook deliveries\`.

Options:
${bucketHelp}
  --json         Print a JSON object.`,

  async run(args, context) {
    const { values, positionals } = parse('webhook redeliver', {
      args: [...args],
      allowPositionals: true,
      options: { ...bucketOption, json: { type: 'boolean' } },
    })
    const [id, number, ...more] = positionals
    if (id === undefined || number === undefined || more.length > 0 || !/^[1-9]\d{0,14}$/.test(number))
      throw new UsageError(
        'webhook redeliver takes one ID and one NUMBER. See: mediabucket webhook deliveries',
      )
    await withWebhooks(context, values.bucket, async (webhooks) =>
      printDelivery(await webhooks.redeliver(id, Number(number)), values.json === true, context.print),
    )
  },
})

/** Throws CommandError if it was not delivered. */
function printDelivery(delivery: WebhookDelivery, isJson: boolean, print: (line: string) => void): void {
  const { status, reason, duration, response } = delivery
  if (isJson) print(jsonLine(delivery))
  else if (status !== null) print(`${status} in ${duration} ms${response === '' ? '' : `: ${response}`}`)
  if (reason !== null) throw new CommandError(`the delivery failed. ${reason}${ownSettingHint(reason)}`)
}
