import type { UpkeepRun } from './records.ts'

/** The kinds of upkeep runs, and how they are stored: one value of the table `meta` for each kind. */
export const upkeepKinds = ['backup', 'fsck'] as const

export const upkeepKey = (kind: UpkeepRun['kind']): string => `last-${kind}`

export const formatUpkeepRun = ({ finishedAt, faults }: UpkeepRun): string => `${finishedAt} ${faults}`

export function parseUpkeepRun(kind: UpkeepRun['kind'], stored: string): UpkeepRun {
  const [finishedAt = 0, faults = 0] = stored.split(' ').map(Number)
  return { kind, finishedAt, faults }
}
