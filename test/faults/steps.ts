import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'

/** What stands at a path of the data directory. */
type Place = 'temporary' | 'part' | 'blob' | 'shard' | 'root' | 'other'

/** What a transaction has done by its commit. */
export type Deed = 'item' | 'upload' | 'offset' | 'finish' | 'removal' | 'tombstones'

/** A call by which the service changes its files. */
export type FileCall = { readonly path: string; readonly place: Place } & (
  | { readonly name: 'open' | 'write' | 'sync' | 'mkdir' | 'unlink' }
  | { readonly name: 'rename'; readonly toPath: string; readonly to: Place }
)

/** The end of a transaction. */
export interface CommitCall {
  readonly name: 'commit'
  readonly deeds: ReadonlySet<Deed>
}

type Call = FileCall | CommitCall

interface Step {
  /** The step is when this call is about to be made, or has returned. */
  readonly when: 'before' | 'after'
  readonly is: (call: Call) => boolean
  /** The request that comes by it, or the start of the service alone. */
  readonly by: 'upload' | 'pieces' | 'removal' | 'start'
}

const at = (name: Call['name'], place: Place) => (call: Call) =>
  call.name === name && 'place' in call && call.place === place
const renames = (from: Place, to: Place) => (call: Call) =>
  call.name === 'rename' && call.place === from && call.to === to
const commits = (deed: Deed) => (call: Call) => call.name === 'commit' && call.deeds.has(deed)

/** The named steps of commits and deletes, in their order. */
export const steps = {
  'file opened': { when: 'after', is: at('open', 'temporary'), by: 'upload' },
  'file written': { when: 'after', is: at('write', 'temporary'), by: 'upload' },
  'before the file is synced': { when: 'before', is: at('sync', 'temporary'), by: 'upload' },
  'file synced': { when: 'after', is: at('sync', 'temporary'), by: 'upload' },
  'shard made': { when: 'after', is: at('mkdir', 'shard'), by: 'upload' },
  'before the rename': { when: 'before', is: renames('temporary', 'blob'), by: 'upload' },
  renamed: { when: 'after', is: renames('temporary', 'blob'), by: 'upload' },
  'before the directory is synced': { when: 'before', is: at('sync', 'shard'), by: 'upload' },
  'directory synced': { when: 'after', is: at('sync', 'shard'), by: 'upload' },
  'before the item is committed': { when: 'before', is: commits('item'), by: 'upload' },
  'item committed': { when: 'after', is: commits('item'), by: 'upload' },
  'upload begun': { when: 'after', is: commits('upload'), by: 'pieces' },
  'piece written': { when: 'after', is: at('write', 'part'), by: 'pieces' },
  'before the piece is synced': { when: 'before', is: at('sync', 'part'), by: 'pieces' },
  'piece synced': { when: 'after', is: at('sync', 'part'), by: 'pieces' },
  'before the offset is committed': { when: 'before', is: commits('offset'), by: 'pieces' },
  'offset committed': { when: 'after', is: commits('offset'), by: 'pieces' },
  'before the last piece is renamed': { when: 'before', is: renames('part', 'blob'), by: 'pieces' },
  'last piece renamed': { when: 'after', is: renames('part', 'blob'), by: 'pieces' },
  'before the upload is finished': { when: 'before', is: commits('finish'), by: 'pieces' },
  'upload finished': { when: 'after', is: commits('finish'), by: 'pieces' },
  'last piece taken back': { when: 'after', is: renames('blob', 'part'), by: 'start' },
  'before the row is removed': { when: 'before', is: commits('removal'), by: 'removal' },
  'row removed': { when: 'after', is: commits('removal'), by: 'removal' },
  'before the unlink': { when: 'before', is: at('unlink', 'blob'), by: 'removal' },
  unlinked: { when: 'after', is: at('unlink', 'blob'), by: 'removal' },
  'before the tombstone goes': { when: 'before', is: commits('tombstones'), by: 'removal' },
  'tombstone gone': { when: 'after', is: commits('tombstones'), by: 'removal' },
} as const satisfies Record<string, Step>

export type StepName = keyof typeof steps

const stepNames = Object.keys(steps) as StepName[]

export const stepsOf = (by: Step['by']): StepName[] => stepNames.filter((name) => steps[name].by === by)

/** What happens at a step: the process is killed, the call fails with this error, or it waits for a file to appear. */
const Failpoint = Type.Object({
  step: Type.Unsafe<StepName>(Type.String()),
  /** Which time that the step is reached, from 1. */
  nth: Type.Integer(),
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

/** Where a server enters its failpoints as they are reached. */
export const reachedFile = (directory: string): string => join(directory, 'failpoints-reached')

/** The steps at which the present server's failpoints were reached, in their order. */
export const readReached = (directory: string): string[] =>
  existsSync(reachedFile(directory))
    ? readFileSync(reachedFile(directory), 'utf8').split('\n').slice(0, -1)
    : []
