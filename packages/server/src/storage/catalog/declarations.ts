import type { UploadId } from '../../core/ids.ts'
import type { BucketId } from './records.ts'
import type { Query, Work } from './statements.ts'

// A file of the catalog declares each of its operations once: as a function that yields its statements, and in its table `reads` or `writes`. The
// methods of Catalog and the messages of the writers are derived from these (catalog.ts). On SQLite a read runs in the thread that responds to requests,
// so the rows that it reads are bounded; a long search runs in a thread of its own (engines/sqlite/name-search.ts).

/** What a function returns: of a coroutine, its result. */
export type ResultOf<Made> = Made extends Query<infer Result> | Work<infer Result> ? Result : Made

/** The methods of functions, of which `Name` are operations. The name of each leads to its function, as the symbol of the method is that of the function. */
export type Methods<Functions, Name extends keyof Functions = keyof Functions> = {
  readonly [K in Name]: Functions[K] extends (...input: infer Input) => infer Made
    ? (...input: Input) => Promise<ResultOf<Made> extends undefined ? void : ResultOf<Made>>
    : never
}

export interface Tables {
  readonly reads?: object
  readonly writes?: object
}

/** The methods of the functions of a file that are in its tables. */
export type OperationsOf<File extends Tables> = Methods<
  File,
  (keyof File['reads'] | keyof File['writes']) & keyof File
>

/** The bucket whose row a write locks before its statements, in databases that lock rows. */
export type BucketKey =
  | { readonly bucketId: BucketId }
  | { readonly bucket: string }
  | { readonly uploadId: UploadId }

export const ofBucket = (bucketId: BucketId): BucketKey => ({ bucketId })
export const ofBucketNamed = (bucket: string): BucketKey => ({ bucket })
export const ofUpload = (uploadId: UploadId): BucketKey => ({ uploadId })

interface Traits<First> {
  /** The bucket that it locks, by its first parameter. Changes of one bucket are made in their order. */
  readonly locks?: (first: First) => BucketKey
  /** Whether it changes the items of this bucket. Then those who watch the feed learn of it at once. */
  readonly changesItems?: boolean
}

/** A write as it is declared. */
export interface DeclaredWrite<Make> {
  readonly make: Make
  /** The index of the parameter with the actor, for the audit log; null if it is not audited. */
  readonly by: number | null
  readonly locks: ((first: never) => BucketKey) | null
  readonly changesItems: boolean
}

type DeclaredWrites<Makes> = { readonly [K in keyof Makes]: DeclaredWrite<Makes[K]> }

/** Any function that yields statements. */
type Make = (...input: never) => Work<unknown>

type FirstOf<Function> = Function extends (first: infer First, ...others: never) => unknown ? First : never

/** Declares writes that have the same traits. */
export const writesOf = <Makes extends { readonly [K in keyof Makes]: Make }>(
  makes: Makes,
  { locks, changesItems = false }: Traits<FirstOf<Makes[keyof Makes]>> = {},
): DeclaredWrites<Makes> =>
  mapValues(makes, (make) => ({ make, by: null, locks: locks ?? null, changesItems }))

/** As writesOf. The actor is the last parameter without a default. */
export const auditedWritesOf = <Makes extends { readonly [K in keyof Makes]: Make }>(
  makes: Makes,
  { locks, changesItems = false }: Traits<FirstOf<Makes[keyof Makes]>> = {},
): DeclaredWrites<Makes> =>
  mapValues(makes, (make) => ({ make, by: make.length - 1, locks: locks ?? null, changesItems }))

/** An object with the names of another one. */
const mapValues = <From extends object, To extends { readonly [K in keyof From]: unknown }>(
  from: From,
  to: <K extends keyof From>(value: From[K]) => To[K],
): To => Object.fromEntries(Object.entries(from).map(([name, value]) => [name, to(value)])) as To
