import { expect, onTestFinished, test } from 'vitest'
import {
  webhookCreate,
  webhookDelete,
  webhookDeliveries,
  webhookList,
  webhookRedeliver,
  webhookSet,
  webhookTest,
} from '../../packages/server/src/cli/admin/webhook-commands.ts'
import type { Command } from '../../packages/server/src/cli/command.ts'
import { readConfig } from '../../packages/server/src/service/config.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { respondWith, startReceiver } from '../harness/receiver.ts'

/** Runs commands in this process, on data that no service uses. */
async function prepare() {
  const directory = await temporaryDirectory()
  onTestFinished(() => directory[Symbol.asyncDispose]())
  const receiver = await startReceiver()
  onTestFinished(receiver.close)
  const data = directory.path
  await runHere(data, 'token create', '--bucket', 'photos')
  async function run(command: Command, ...args: string[]) {
    const [printed, reported]: [string[], string[]] = [[], []]
    const { config } = readConfig({ MEDIABUCKET_DATA: data, MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1' })
    const context = { config, warnings: [], print: push(printed), report: push(reported) }
    const error = await command.run(args, context).catch((error: unknown) => error)
    return { printed, reported, error }
  }
  return { receiver, run }
}

const push =
  (lines: string[]) =>
  (...more: readonly string[]) =>
    void lines.push(...more)

test('WH11 webhooks are created, listed, changed, tested and deleted by commands', async () => {
  const { receiver, run } = await prepare()
  const created = await run(
    webhookCreate,
    '--bucket',
    'photos',
    '--to',
    receiver.url,
    '--kinds',
    'removed,added',
  )
  const id = /wh_\w+/.exec(created.reported.join())?.[0] ?? ''
  expect(created.printed).toEqual([expect.stringMatching(/^whsec_/)])
  receiver.secrets.add(created.printed.join())
  const listed = async () => {
    const { printed } = await run(webhookList, '--bucket', 'photos', '--json')
    return printed.map((line) => JSON.parse(line))
  }
  expect(await listed()).toMatchObject([
    { id, bucket: 'photos', url: receiver.url, kinds: ['added', 'removed'], batch: 1, state: 'on' },
  ])
  expect(JSON.stringify(await listed())).not.toContain('whsec_')
  await run(webhookSet, id, '--kinds', 'all', '--batch', '50', '--state', 'off')
  expect(await listed()).toMatchObject([{ kinds: [], batch: 50, state: 'off' }])
  const [row] = (await run(webhookList)).printed
  expect(row?.split(/ {2,}/)).toEqual([id, 'photos', 'off', '0', '-', 'all', '50', receiver.url])

  receiver.respond = respondWith(200, 'thanks')
  const tested = await run(webhookTest, id)
  expect(tested.printed.join()).toMatch(/^200 in \d+ ms: thanks$/)
  expect(tested.reported.join()).toContain(
    `is off, and delivers nothing until: mediabucket webhook set ${id} --state on`,
  )
  const rotated = await run(webhookSet, id, '--new-secret', '--overlap', '1h')
  receiver.secrets.clear()
  receiver.secrets.add(rotated.printed.join())
  receiver.respond = respondWith(500, 'no')
  const failed = await run(webhookTest, id, '--json')
  expect(failed.error).toMatchObject({
    name: 'CommandError',
    exitCode: 1,
    message: expect.stringContaining('500'),
  })
  expect(JSON.parse(failed.printed.join())).toMatchObject({ number: 2, status: 500, response: 'no' })
  receiver.respond = respondWith(204)
  expect((await run(webhookRedeliver, id, '2')).printed.join()).toMatch(/^204 in \d+ ms$/)
  expect((await run(webhookRedeliver, id, '99')).error).toMatchObject({ exitCode: 4 })
  const { printed } = await run(webhookDeliveries, id, '--json')
  const deliveries = printed.map((line) => JSON.parse(line))
  expect(deliveries.map(({ number, status }) => [number, status])).toEqual([
    [3, 204],
    [2, 500],
    [1, 200],
  ])
  expect(deliveries[0]?.message_id).toBe(deliveries[1]?.message_id)
  expect((await run(webhookDeliveries, id)).printed).toHaveLength(3)

  expect((await run(webhookDelete, id)).error).toBeUndefined()
  expect((await run(webhookDelete, id)).error).toMatchObject({ exitCode: 4 })
  expect((await run(webhookList)).reported.join()).toContain('There are no webhooks')
})

test('WH11 wrong arguments are explained', async () => {
  const { run } = await prepare()
  const url = 'https://example.org/'
  const wrong: readonly (readonly [Command, readonly string[], RegExp])[] = [
    [webhookCreate, ['--to', url], /needs --bucket NAME and --to URL/],
    [
      webhookCreate,
      ['--bucket', 'photos', '--to', 'example.org'],
      /^--to is not valid\. It takes a URL with http or https/,
    ],
    [
      webhookCreate,
      ['--bucket', 'photos', '--to', 'http://10.1.2.3/'],
      /MEDIABUCKET_WEBHOOK_ALLOW.*--env-file/,
    ],
    [webhookCreate, ['--bucket', 'photos', '--to', url, '--kinds', 'new'], /"new" is not a kind/],
    [webhookCreate, ['--bucket', 'photos', '--to', url, '--batch', '0'], /from 1 to 100/],
    [webhookCreate, ['--bucket', 'none', '--to', url], /there is no bucket "none"/],
    [webhookList, ['--bucket', 'none'], /there is no bucket "none"/],
    [webhookSet, ['wh_000000000000'], /needs --to/],
    [webhookSet, ['wh_000000000000', '--state', 'gone'], /on or off/],
    [webhookSet, ['wh_000000000000', '--new-secret', '--overlap', '8d'], /at most 7d/],
    [webhookSet, ['wh_000000000000', '--state', 'on'], /there is no webhook/],
    [webhookTest, [], /takes one ID/],
    [webhookRedeliver, ['wh_000000000000', 'x'], /one NUMBER/],
  ]
  for (const [command, args, message] of wrong)
    expect((await run(command, ...args)).error).toMatchObject({ message: expect.stringMatching(message) })
})
