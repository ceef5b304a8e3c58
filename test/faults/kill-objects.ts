import { setTimeout } from 'node:timers/promises'
import { databaseSettings, usePostgres, useS3 } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { makeServicePair, type Pair } from '../harness/s3-door.ts'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { checkCleared, checkLeftovers, rowsIn } from './check-leftovers.ts'
import { watchUsage } from './check-usage.ts'
import { type Fault, onEngines, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { checkAudit, checkFeed } from './objects/check-history.ts'
import { checkObjects, hashesBelow } from './objects/check-objects.ts'
import { checkUploads } from './objects/check-uploads.ts'
import { type ObjectClient, type ObjectScene, objectClients } from './objects/object-clients.ts'
import { ObjectLedger } from './objects/object-ledger.ts'
import { openSyncs, rclonePrefix, type Syncs } from './objects/rclone.ts'
import { Door } from './objects/requests.ts'
import { uploadClients } from './objects/upload-clients.ts'
import { openOtherServer } from './other-server.ts'
import { type Instance, type Instances, instanceOf, openInstances } from './server-instances.ts'

/** Rounds on one data directory; then it is checked completely, and a new one is created. */
const roundsEach = 10

/** Requests that are acknowledged before a kill, at most, and the milliseconds that follow. */
const before = 25
const longest = 200

const atOnce = 6

export const objectSettings = {
  MEDIABUCKET_AUDIT: 'all',
  MEDIABUCKET_ADDRESS_RATE: 'off',
  MEDIABUCKET_TOKEN_RATE: 'off',
  MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
}

const objectBucket = 'objects'

/** Creates the bucket of the objects, and what its clients need. */
export async function openScene(
  instance: Instance,
  ledger: Ledger,
  bucket = objectBucket,
): Promise<{ readonly scene: ObjectScene; readonly pair: Pair }> {
  const pair = await makeServicePair(instance.server)
  const door = new Door(pair, bucket)
  const { status } = await door.send(instance, 'PUT', null)
  if (status !== 200) throw new Error(`the creation of the bucket gets ${status}`)
  const scopes = 'media:read,media:write,media:delete'
  const { token, authorization } = await makeToken(instance.server, '--bucket', bucket, '--scope', scopes)
  return { scene: { door, record: new ObjectLedger(ledger), token, authorization }, pair }
}

/** All kinds of requests, those of single objects more often. */
function clientsOf(scene: ObjectScene): readonly ObjectClient[] {
  const objects = objectClients(scene)
  const uploads = uploadClients(scene)
  const { put, replaceIfEqual, copy, remove, read } = objects
  const { putPart, complete } = uploads
  return [
    ...[...Object.values(objects), ...Object.values(uploads)],
    ...[put, put, put, replaceIfEqual, copy, remove, read, read, putPart, putPart, complete, complete],
  ]
}

/** Sends requests to any of the running servers until `isDone` returns true. */
export async function workOn(
  scene: ObjectScene,
  running: () => readonly Instance[],
  isDone: () => boolean,
  count = atOnce,
): Promise<void> {
  const { record } = scene
  const kinds = clientsOf(scene)
  const client = async () => {
    while (!isDone()) {
      const instance = record.any(running())
      const kind = record.any(kinds)
      if (instance === undefined || kind === undefined) await setTimeout(1)
      else await kind(instance).catch((error: unknown) => recordUnlessLost(record, error))
    }
  }
  await Promise.all(Array.from({ length: count }, client))
}

/** Each kind of request once or twice, one after the other. Returns the statuses of the responses. */
export async function sendEach(scene: ObjectScene, instance: Instance): Promise<readonly number[]> {
  const {
    put,
    create,
    copy,
    replaceIfEqual,
    remove,
    removeSeveral,
    removeItem,
    uploadUnkeyed,
    removeUnkeyed,
  } = objectClients(scene)
  const { createUpload, putPart, copyPart, complete, abort } = uploadClients(scene)
  const statuses: number[] = []
  for (const client of [
    ...[put, put, create, replaceIfEqual, copy, uploadUnkeyed],
    ...[createUpload, putPart, putPart, complete, createUpload, putPart, copyPart, complete, complete, abort],
    ...[removeUnkeyed, removeItem, remove, removeSeveral, put],
  ])
    statuses.push(await client(instance))
  return statuses
}

/** fetch reports a lost connection as a TypeError. */
function recordUnlessLost(record: ObjectLedger, error: unknown): void {
  if (!(error instanceof TypeError && /fetch failed|terminated/.test(error.message)))
    record.fault('halfVisible', error instanceof Error ? (error.stack ?? error.message) : String(error))
}

/** Compares an idle service with all that is known of the bucket. */
export async function checkScene(scene: ObjectScene, instance: Instance, syncs: Syncs | null): Promise<void> {
  await checkUploads(scene, instance, (key) => key.startsWith(rclonePrefix))
  await checkObjects(scene, instance, syncs?.others ?? null)
}

/** Waits for a random number of acknowledged requests, and a random time. */
async function workBeforeKill({ random, tally }: Ledger, most = before): Promise<void> {
  const wanted = tally.acknowledged + random(most)
  await until('acknowledged requests', () => tally.acknowledged >= wanted, 600_000)
  await setTimeout(random(longest))
}

async function onOneDirectory(rounds: number, onRound: () => void, hasTrash: boolean): Promise<Ledger> {
  await using instances = await openInstances()
  const ledger = createLedger()
  await using other = await openOtherServer(ledger.random, () => false)
  const settings = ledger.random(3) === 0 ? { ...objectSettings, ...other.scanSettings } : objectSettings
  let instance = await instances.start(settings)
  const { scene, pair } = await openScene(instance, ledger)
  if (hasTrash) await instance.server.command('bucket', 'set', objectBucket, '--trash-days', '2')
  await using syncs = await openSyncs(scene.record, pair, objectBucket)
  // On a busy machine, the service can be killed in each round before it acknowledges anything.
  await objectClients(scene).put(instance)
  for (let round = 0; round < rounds; round += 1) {
    const { server } = instance
    const exited = new Promise((resolve) => server.process.once('exit', resolve))
    let isDone = false
    other.disturb()
    const current = [instance]
    const working = Promise.all([
      workOn(
        scene,
        () => current,
        () => isDone,
      ),
      syncs.work(exited, instance),
    ])
    await workBeforeKill(ledger)
    await server.kill()
    isDone = true
    await working
    other.calm()
    instance = await instances.start(settings)
    await checkCleared(instances.directory, ['tmp'], ledger)
    await checkScene(scene, instance, syncs)
    ledger.tally.rounds += 1
    onRound()
  }
  await instance.server.kill()
  const checkUsage = await watchUsage(instances.directory, ledger, { bucket: objectBucket, hasHeads: true })
  instance = await instances.start(settings)
  await finish(scene, instances, instance, syncs)
  if (!hasTrash) await checkUsage()
  return ledger
}

/** The last checks on one data directory, whose server ends with them. Some uploads in parts are unfinished. */
async function finish(
  scene: ObjectScene,
  { directory }: Instances,
  instance: Instance,
  syncs: Syncs | null,
): Promise<void> {
  const { record } = scene
  if (syncs) await syncs.finish(instance, () => hashesBelow(scene, instance, rclonePrefix))
  await checkScene(scene, instance, syncs)
  const items = await checkFeed(scene, instance)
  await instance.server.stop()
  const { trash_days: days } =
    (await rowsIn(directory, `SELECT trash_days FROM buckets WHERE name = '${objectBucket}'`))[0] ?? {}
  if (Number(days) === 0) await checkAudit(scene, directory, items)
  await checkLeftovers(directory, record.ledger)
}

const killing: Fault['run'] = async (rounds, onRound) => {
  const ledgers: Ledger[] = []
  for (let done = 0; done < rounds; done += roundsEach)
    ledgers.push(await onOneDirectory(Math.min(roundsEach, rounds - done), onRound, ledgers.length % 3 === 2))
  return verdictOf(...ledgers)
}

export const killDuringObjects: Fault = {
  title: 'kill -9 at random during requests of S3 and rclone sync',
  run: killing,
}
export const killDuringObjectsOnS3 = onEngines(killDuringObjects, 'S3', useS3)
export const killDuringObjectsOnPostgres = onEngines(killDuringObjects, 'PostgreSQL', usePostgres)
export const killDuringObjectsOnPostgresAndS3 = onEngines(
  killDuringObjects,
  'PostgreSQL and S3',
  usePostgres,
  useS3,
)

/** Starts a server on the catalog and the store of another one, and on a data directory of its own. */
async function startBeside({ server, token }: Instance, directory: string): Promise<Instance> {
  const settings = { ...(await databaseSettings(server.data)), MEDIABUCKET_S3_PORT: '0', ...objectSettings }
  return instanceOf(await startServer(settings, directory), token)
}

/** Kills one of two servers that share a database and a store, or ends their connections to the database, while both answer. */
async function onTwoServers(rounds: number, onRound: () => void): Promise<Ledger> {
  await using instances = await openInstances()
  await using other = await temporaryDirectory()
  const ledger = createLedger()
  const first = await instances.start(objectSettings)
  const { scene } = await openScene(first, ledger)
  await objectClients(scene).put(first)
  let running = [first, await startBeside(first, other.path)]
  for (let round = 0; round < rounds; round += 1) {
    let isDone = false
    const working = workOn(
      scene,
      () => running,
      () => isDone,
    )
    await workBeforeKill(ledger)
    if (round % 4 === 3) await endConnections(instances.directory)
    else {
      const victim = running[ledger.random(2)] ?? first
      running = running.filter((instance) => instance !== victim)
      await victim.server.kill()
      await workBeforeKill(ledger, 5)
      running = [
        ...running,
        await (victim.server.data === other.path
          ? startBeside(first, other.path)
          : instances.start(objectSettings)),
      ]
    }
    await workBeforeKill(ledger, 5)
    isDone = true
    await working
    await until('the end of all transactions', () => isIdle(instances.directory))
    for (const instance of running) await checkScene(scene, instance, null)
    ledger.tally.rounds += 1
    onRound()
  }
  await Promise.all(running.map(({ server }) => server.kill()))
  await finish(scene, instances, await instances.start(objectSettings), null)
  return ledger
}

/** Of all servers, except the one of this statement. */
const connections = `FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`

const endConnections = (directory: string) =>
  rowsIn(directory, `SELECT pg_terminate_backend(pid) ${connections} AND random() < 0.7`)

const isIdle = async (directory: string) =>
  (await rowsIn(directory, `SELECT 1 ${connections} AND xact_start IS NOT NULL`)).length === 0

const killingOfTwo: Fault['run'] = async (rounds, onRound) => {
  const ledgers: Ledger[] = []
  for (let done = 0; done < rounds; done += roundsEach)
    ledgers.push(await onTwoServers(Math.min(roundsEach, rounds - done), onRound))
  return verdictOf(...ledgers)
}

export const killOfTwoDuringObjects = onEngines(
  { title: 'kill -9 of one of two servers during requests of S3', run: killingOfTwo },
  'PostgreSQL and S3',
  usePostgres,
  useS3,
)
