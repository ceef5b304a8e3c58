import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'

/** The kind of entry at a path of the data directory. */
type Place = 'temporary' | 'part' | 'blob' | 'shard' | 'root' | 'other'

/** The changes of a transaction. */
export type Change =
  | 'intents'
  | 'item'
  | 'upload'
  | 'offset'
  | 'finish'
  | 'removal'
  | 'tombstones'
  | 'settled intents'
  | 'key'
  | 'object upload'
  | 'object part'
  | 'completion'
  | 'ended object upload'

/** A call that changes a file of the service. */
export type FileCall = { readonly path: string; readonly place: Place } & (
  | { readonly name: 'open' | 'write' | 'sync' | 'mkdir' | 'unlink' }
  | { readonly name: 'rename'; readonly toPath: string; readonly to: Place }
)

/** The end of a transaction. */
export interface CommitCall {
  readonly name: 'commit'
  readonly changes: ReadonlySet<Change>
}

type Call = FileCall | CommitCall

interface Step {
  /** Whether the step is before this call or after its return. */
  readonly when: 'before' | 'after'
  readonly matches: (call: Call) => boolean
  /** The kind of request that reaches the step; `start` if only a start does, `object` if one of the S3 protocol does. */
  readonly by: 'upload' | 'resumable' | 'removal' | 'start' | 'object' | 'any'
}

const at = (name: Call['name'], place: Place) => (call: Call) =>
  call.name === name && 'place' in call && call.place === place
const renames = (from: Place, to: Place) => (call: Call) =>
  call.name === 'rename' && call.place === from && call.to === to
const commits =
  (...changes: readonly Change[]) =>
  (call: Call) =>
    call.name === 'commit' && changes.every((change) => call.changes.has(change))

/** The named steps of commits and deletes, in their order. */
export const steps = {
  'file opened': { when: 'after', matches: at('open', 'temporary'), by: 'upload' },
  'file written': { when: 'after', matches: at('write', 'temporary'), by: 'upload' },
  'before the file is synced': { when: 'before', matches: at('sync', 'temporary'), by: 'upload' },
  'file synced': { when: 'after', matches: at('sync', 'temporary'), by: 'upload' },
  'before the intent is committed': { when: 'before', matches: commits('intents'), by: 'upload' },
  'intent committed': { when: 'after', matches: commits('intents'), by: 'upload' },
  'shard created': { when: 'after', matches: at('mkdir', 'shard'), by: 'upload' },
  'before the rename': { when: 'before', matches: renames('temporary', 'blob'), by: 'upload' },
  renamed: { when: 'after', matches: renames('temporary', 'blob'), by: 'upload' },
  'before the directory is synced': { when: 'before', matches: at('sync', 'shard'), by: 'upload' },
  'directory synced': { when: 'after', matches: at('sync', 'shard'), by: 'upload' },
  'before the item is committed': { when: 'before', matches: commits('item'), by: 'upload' },
  'item committed': { when: 'after', matches: commits('item'), by: 'upload' },
  'upload created': { when: 'after', matches: commits('upload'), by: 'resumable' },
  'chunk written': { when: 'after', matches: at('write', 'part'), by: 'resumable' },
  'before the chunk is synced': { when: 'before', matches: at('sync', 'part'), by: 'resumable' },
  'chunk synced': { when: 'after', matches: at('sync', 'part'), by: 'resumable' },
  'before the offset is committed': { when: 'before', matches: commits('offset'), by: 'resumable' },
  'offset committed': { when: 'after', matches: commits('offset'), by: 'resumable' },
  'before the last chunk is renamed': { when: 'before', matches: renames('part', 'blob'), by: 'resumable' },
  'last chunk renamed': { when: 'after', matches: renames('part', 'blob'), by: 'resumable' },
  'before the upload is finished': { when: 'before', matches: commits('finish'), by: 'resumable' },
  'upload finished': { when: 'after', matches: commits('finish'), by: 'resumable' },
  'before the intents are removed': { when: 'before', matches: commits('settled intents'), by: 'start' },
  'last chunk moved back': { when: 'after', matches: renames('blob', 'part'), by: 'start' },
  'before the row is removed': { when: 'before', matches: commits('removal'), by: 'removal' },
  'row removed': { when: 'after', matches: commits('removal'), by: 'removal' },
  'before the unlink': { when: 'before', matches: at('unlink', 'blob'), by: 'removal' },
  unlinked: { when: 'after', matches: at('unlink', 'blob'), by: 'removal' },
  'before the tombstone is removed': { when: 'before', matches: commits('tombstones'), by: 'removal' },
  'tombstone removed': { when: 'after', matches: commits('tombstones'), by: 'removal' },
  'before the key is bound': { when: 'before', matches: commits('item', 'key'), by: 'object' },
  'key bound': { when: 'after', matches: commits('item', 'key'), by: 'object' },
  'before the item of a key is replaced': {
    when: 'before',
    matches: commits('removal', 'key'),
    by: 'object',
  },
  'item of a key replaced': { when: 'after', matches: commits('removal', 'key'), by: 'object' },
  'before the upload in parts is created': {
    when: 'before',
    matches: commits('object upload'),
    by: 'object',
  },
  'upload in parts created': { when: 'after', matches: commits('object upload'), by: 'object' },
  'before the part is committed': { when: 'before', matches: commits('object part'), by: 'object' },
  'part committed': { when: 'after', matches: commits('object part'), by: 'object' },
  'before the completion is committed': { when: 'before', matches: commits('completion'), by: 'object' },
  'completion committed': { when: 'after', matches: commits('completion'), by: 'object' },
  'before the upload in parts is removed': {
    when: 'before',
    matches: commits('ended object upload'),
    by: 'object',
  },
  'upload in parts removed': { when: 'after', matches: commits('ended object upload'), by: 'object' },
  'any call': { when: 'before', matches: () => true, by: 'any' },
  'any commit': { when: 'after', matches: ({ name }) => name === 'commit', by: 'any' },
} as const satisfies Record<string, Step>

export type StepName = keyof typeof steps

const stepNames = Object.keys(steps) as StepName[]

export const stepsOf = (by: Step['by']): StepName[] => stepNames.filter((name) => steps[name].by === by)

/** The action at a step: the process is killed, the call fails with this error, or it waits until a file exists. */
const Failpoint = Type.Object({
  step: Type.Unsafe<StepName>(Type.String()),
  /** The occurrence of the step, from 1. */
  nth: Type.Integer(),
  /** A file: only occurrences count while it exists. */
  from: Type.Optional(Type.String()),
  action: Type.Union([
    Type.Literal('kill'),
    Type.Literal('EIO'),
    Type.Literal('ENOSPC'),
    Type.Object({ holdUntil: Type.String() }),
  ]),
})
export type Failpoint = Type.Static<typeof Failpoint>

/** The variable that holds the failpoints of a server. */
export const failpointsVariable = 'FAILPOINTS'

/** The failpoints of this process. */
export const readFailpoints = (env: NodeJS.ProcessEnv): Failpoint[] =>
  Value.Parse(Type.Array(Failpoint), JSON.parse(env[failpointsVariable] ?? ''))

/** The file in which a server records its reached failpoints. */
export const reachedFile = (directory: string): string => join(directory, 'failpoints-reached')

/** The reached failpoints of the running server, in order. */
export const readReached = (directory: string): string[] =>
  existsSync(reachedFile(directory))
    ? readFileSync(reachedFile(directory), 'utf8').split('\n').slice(0, -1)
    : []
