import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkAuditLog, checkLeftovers } from './check-leftovers.ts'
import { createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { checkScene, objectSettings, openScene, sendEach, workOn } from './kill-objects.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type ObjectScene, objectClients } from './objects/object-clients.ts'
import { uploadClients } from './objects/upload-clients.ts'
import { openOtherServer } from './other-server.ts'
import { withFailpoints } from './preload.ts'
import { type Instance, openInstances } from './server-instances.ts'
import { type DiskRound, onSmallDisks, type SmallDisk } from './small-disks.ts'
import { must } from './stage.ts'
import { type Failpoint, readReached } from './steps.ts'

// Disks that fail, and full disks, during requests of the S3 protocol. A response other than a 500 says whether anything was stored, which the record of the
// clients compares (see objects/object-ledger.ts).

const full = 507

/** Concurrent uploads without the S3 protocol. */
const uploadsAtOnce = 3

/** What fails; each round takes the next call. Nothing is stored after an error of a commit, unless the error follows it. */
const failures: readonly Pick<Failpoint, 'step' | 'action'>[] = [
  { step: 'any call', action: 'ENOSPC' },
  { step: 'any call', action: 'EIO' },
  { step: 'any commit', action: 'EIO' },
]

/** Calls of the requests of one round, at least, and commits of them. */
const usualCalls = { 'any call': 60, 'any commit': 15 }

/**
 * Each round fails the next call that changes files or commits, until requests of each kind succeed. Then it begins again with the next failure. Every second
 * round sends requests at the same time, which share commits.
 */
export const failObjectsAtCalls: Fault = {
  title: 'EIO and ENOSPC of each call that changes files or commits, during requests of S3 and uploads',
  async run(rounds, onRound) {
    const ledger = createLedger()
    await using other = await openOtherServer(ledger.random)
    const clients = createClients(ledger, undefined, other)
    await using instances = await openInstances()
    let instance = await instances.start(objectSettings)
    const { scene } = await openScene(instance, ledger)
    await objectClients(scene).put(instance)
    const armed = join(instances.directory, 'failpoints-armed')
    let kind = rounds < usualCalls['any call'] ? ledger.random(failures.length) : 0
    let nth = 1
    for (let round = 0; round < rounds; round += 1) {
      const { step, action } = failures[kind % failures.length] ?? { step: 'any call', action: 'EIO' }
      const most = step === 'any commit' ? usualCalls['any commit'] : usualCalls['any call']
      const isShared = round % 2 === 1
      const at = isShared || rounds < usualCalls['any call'] ? 1 + ledger.random(most) : nth
      await instance.server.stop()
      instance = await instances.start({
        ...{ ...objectSettings, ...other.settings },
        ...withFailpoints({ step, nth: at, from: armed, action }),
      })
      writeFileSync(armed, '')
      const isReached = () => readReached(instances.directory).length > 0
      if (isShared)
        await Promise.all([
          workOn(scene, () => [instance], isReached),
          clients.workUntil(isReached, instance, uploadsAtOnce),
        ])
      else {
        const statuses = await sendEach(scene, instance)
        checkStatuses(statuses, isReached() ? action === 'ENOSPC' : null)
        if (isReached()) nth += 1
        else [nth, kind] = [1, kind + 1]
      }
      rmSync(armed)
      must('the service survives a call that fails', instance.server.process.exitCode === null)
      await checkScene(scene, instance, null)
      await ledger.check(instance, 'new')
      checkStatuses(await sendEach(scene, instance), null)
      await clients.resumeAll(instance)
      ledger.tally.rounds += 1
      onRound()
    }
    await instance.server.kill()
    instance = await instances.start(objectSettings)
    await checkScene(scene, instance, null)
    await ledger.check(instance)
    await instance.server.stop()
    await checkAuditLog(instances.directory, ledger)
    await checkLeftovers(instances.directory, ledger)
    return verdictOf(ledger)
  },
}

/** A request receives a 5xx only if a call has failed, and a 507 only for a full disk. `isFull` is null if no call has failed. */
function checkStatuses(statuses: readonly number[], isFull: boolean | null): void {
  for (const status of statuses) {
    must(`no request gets a ${status} while no call fails`, status < 500 || isFull !== null)
    must(`a call fails otherwise than with a ${status}`, [500, 503, full].includes(status) || status < 500)
    must('a 507 is for a full disk', status !== full || isFull === true)
  }
}

/** Sends requests until a full disk has refused one of each kind: small objects have room for longer. */
async function sendUntilFull(
  { random }: Ledger,
  instance: Instance,
  disk: SmallDisk,
  clients: readonly ((instance: Instance) => Promise<number>)[],
): Promise<boolean> {
  const refused = new Set<number>()
  for (let tries = 0; tries < 1_000 && refused.size < clients.length; tries += 1) {
    // A checkpoint of the catalog leaves room again.
    if (tries % 100 === 0) await disk.fill()
    const index = random(clients.length)
    const status = (await clients[index]?.(instance)) ?? 0
    must(`a full disk gets a 507, not ${status}`, status < 500 || status === full)
    if (status === full) refused.add(index)
  }
  return refused.size === clients.length
}

/** Fills a disk: requests that store get a 507, objects stay readable and whole, deletes work, and all work once there is room. */
async function fullDisk(
  ledger: Ledger,
  scene: ObjectScene,
  instance: Instance,
  disk: SmallDisk,
): Promise<void> {
  const { put, create, copy, replaceIfEqual, remove, removeItem, removeSeveral } = objectClients(scene)
  const { createUpload, putPart, copyPart, complete, abort } = uploadClients(scene)
  for (let count = 0; count < 3; count += 1) checkStatuses(await sendEach(scene, instance), null)
  const isRefused = await sendUntilFull(ledger, instance, disk, [put, replaceIfEqual, putPart])
  must('puts, replacements and parts get a 507', isRefused)
  await checkScene(scene, instance, null)
  for (const client of [create, copy, copyPart, complete, createUpload, complete, put, abort, complete]) {
    const status = await client(instance)
    must(`a full disk gets a 507, not ${status}`, status < 500 || status === full)
  }
  await checkScene(scene, instance, null)
  for (const client of [remove, removeItem, removeSeveral, abort]) {
    const status = await client(instance)
    must(`a deletion on a full disk gets a ${status}`, status < 500 || status === full)
  }
  await checkScene(scene, instance, null)
  await disk.free()
  checkStatuses(await sendEach(scene, instance), null)
}

/** One round; every second one is killed while its disk is full. */
async function fullDiskOfObjects({ disk, directory, round }: DiskRound): Promise<Ledger> {
  const ledger = createLedger()
  await using instances = await openInstances(directory)
  let instance = await instances.start(objectSettings)
  const { scene } = await openScene(instance, ledger)
  await fullDisk(ledger, scene, instance, disk)
  await checkScene(scene, instance, null)
  if (round % 2 === 1) await disk.fill()
  await instance.server.kill()
  instance = await instances.start(objectSettings)
  await checkScene(scene, instance, null)
  await disk.free()
  await instance.server.stop()
  await checkLeftovers(instances.directory, ledger)
  ledger.tally.rounds += 1
  return ledger
}

export const fullBlobDiskOfObjects = onSmallDisks(
  { title: 'the disk of the blobs is full during requests of S3, then not', megabytes: 80, full: 'blobs' },
  fullDiskOfObjects,
)

export const fullCatalogDiskOfObjects = onSmallDisks(
  {
    title: 'the disk of the catalog is full during requests of S3, then not',
    megabytes: 16,
    full: 'catalog',
  },
  fullDiskOfObjects,
)
