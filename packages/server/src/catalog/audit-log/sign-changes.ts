import type { Actor } from '../../core/actor.ts'
import type { NewMediaContent } from '../records.ts'
import type { AddedContent } from './events.ts'

/**
 * Adds the actors to the inputs of changes. `usual` makes the changes for which no actor is given. Null if the audit log is off: then
 * inputs have no actors, and nothing is recorded.
 */
export function createSigning(usual: Actor | null) {
  return {
    signed: <Input extends object>(input: Input, by = usual): Input & { readonly by?: Actor } =>
      usual === null || by === null ? input : { ...input, by },
    signedItems: (items: readonly NewMediaContent[], by = usual): readonly AddedContent[] =>
      usual === null || by === null ? items : items.map((item) => ({ ...item, by })),
  }
}
