import { describe, expect, test } from 'vitest'
import type { Bucket, BucketId, TokenId } from '../storage/catalog/records.ts'
import { createKeyedReservations, createUploadReservations } from './reservations.ts'

const id = 1 as BucketId

/** A catalog with one bucket, and reservations in it. */
function open(limits: Partial<Bucket>) {
  const state = {
    bucket: {
      name: 'b',
      items: 0,
      bytes: 0,
      reservedItems: 0,
      reservedBytes: 0,
      maxItems: null,
      maxBytes: null,
      maxFileSize: null,
      types: null,
      trashDays: 0,
      isPrivate: false,
      signedPages: false,
      publicKeys: false,
      publicList: false,
      urlUploads: true,
      ...{ variants: null, publicVariants: null, crop: null },
      removesMetadata: false,
      itemDays: null,
      ...limits,
    },
  }
  const reserve = createUploadReservations({
    catalog: { bucket: async () => state.bucket, findToken: async () => null },
  })
  return { state, reserve: (bucketId: BucketId) => reserve({ bucketId, limits: null }) }
}

const one = (bytes: number) => ({ items: 1, bytes })
const exceeded = { code: 'quota-exceeded' }

test('Q2 reserved quota is not available to others until it is released', async () => {
  const { reserve } = open({ maxBytes: 100, reservedBytes: 20 })
  const [first, second] = [reserve(id), reserve(id)]
  await first.hold(one(50))
  await expect(second.hold(one(31))).rejects.toMatchObject(exceeded)
  await second.hold(one(30))
  await expect(first.hold(one(51))).rejects.toMatchObject(exceeded)
  await first.hold(one(10))
  second.release()
  await first.hold(one(80))
  first.release()
  await reserve(id).hold(one(80))
})

test('Q2 of uploads that begin in the same tick, only those that fit get a reservation', async () => {
  const { reserve } = open({ maxItems: 1 })
  const holds = await Promise.allSettled([1, 2, 3].map(() => reserve(id).hold(one(0))))
  expect(holds.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
})

test('Q2 reservations do not affect other buckets', async () => {
  const { reserve } = open({ maxItems: 1 })
  await reserve(id).hold(one(0))
  await reserve(2 as BucketId).hold(one(0))
  await expect(reserve(id).hold(one(0))).rejects.toMatchObject(exceeded)
})

test('Q2 a second release ends no pending commit of another upload', async () => {
  const { state, reserve } = open({ maxBytes: 100 })
  const [ended, pending] = [reserve(id), reserve(id)]
  ended.beginCommit()
  ended.release()
  await pending.hold(one(60))
  pending.beginCommit()
  ended.release()
  state.bucket = { ...state.bucket, items: 1, bytes: 60 }
  const waiting = reserve(id).hold(one(40))
  pending.release()
  await waiting
})

describe('Q2 a reservation that does not fit waits for pending commits', () => {
  test('bytes that are both committed and reserved count once', async () => {
    const { state, reserve } = open({ maxBytes: 100 })
    const first = reserve(id)
    await first.hold(one(60))
    first.beginCommit()
    state.bucket = { ...state.bucket, items: 1, bytes: 60 }
    const [fitting, tooMuch] = [reserve(id).hold(one(40)), reserve(id).hold(one(41))]
    const refused = expect(tooMuch).rejects.toMatchObject(exceeded)
    first.release()
    await fitting
    await refused
  })

  test('the reservation of a failed commit becomes available', async () => {
    const { reserve } = open({ maxBytes: 100 })
    const [first, second] = [reserve(id), reserve(id)]
    await first.hold(one(60))
    first.beginCommit()
    const waiting = second.hold(one(100))
    first.release()
    await waiting
  })
})

/** Reservations of requests with a key, in a bucket of 100 bytes; `stored` is the request that is stored. */
function openKeyed() {
  const { state, reserve } = open({ maxBytes: 100 })
  const keyed: { stored: { bytes: number | null } | null } = { stored: null }
  const reserveKeyed = createKeyedReservations({
    catalog: { findKeyed: async () => keyed.stored },
    reserve: ({ bucketId }) => reserve(bucketId),
    now: () => 1,
  })
  const ofKey = (key: string) =>
    reserveKeyed({ tokenId: 't' as TokenId, key }, { bucketId: id, limits: null })
  return { state, keyed, reserve, ofKey }
}

describe('Q2, I2 requests with an idempotency key', () => {
  test('are refused like others, and reserve once for all that are in progress with one key', async () => {
    const { ofKey, reserve } = openKeyed()
    const [first, second] = [ofKey('a'), ofKey('a')]
    await expect(ofKey('b').hold(one(101))).rejects.toMatchObject(exceeded)
    await Promise.all([first.hold(one(60)), second.hold(one(60)), second.hold(one(80))])
    await expect(ofKey('b').hold(one(21))).rejects.toMatchObject(exceeded)
    first.release()
    first.release()
    await expect(reserve(id).hold(one(21))).rejects.toMatchObject(exceeded)
    second.release()
    await reserve(id).hold(one(100))
  })

  test('need no space if the first one is stored, before or while they arrive, and have no more bytes than it', async () => {
    const { state, keyed, ofKey, reserve } = openKeyed()
    const [first, second] = [ofKey('a'), ofKey('a')]
    await first.hold(one(60))
    await second.hold(one(10))
    first.beginCommit()
    state.bucket = { ...state.bucket, items: 1, bytes: 60 }
    keyed.stored = { bytes: 60 }
    first.release()
    await second.hold(one(60))
    const later = ofKey('a')
    await later.hold(one(60))
    await expect(later.hold(one(61))).rejects.toMatchObject({ code: 'idempotency-key-reused' })
    second.release()
    later.release()
    await reserve(id).hold(one(40))
  })

  test('reserve again if the commit of the first one has failed', async () => {
    const { ofKey, reserve } = openKeyed()
    const [first, second] = [ofKey('a'), ofKey('a')]
    await first.hold(one(60))
    first.beginCommit()
    first.release()
    await second.hold(one(70))
    await expect(reserve(id).hold(one(31))).rejects.toMatchObject(exceeded)
  })
})
