import type { Change, ChangeKind, Output } from './changes.ts'

/** Applies changes durably: a promise resolves once its change is committed and synced. */
export interface Writer {
  apply<K extends ChangeKind>(change: Change<K>): Promise<Output<K>>
  /** Changes that were asked for and are not done. */
  waiting(): number
  /** Finishes what was asked before and releases the database. */
  close(): Promise<void>
}
