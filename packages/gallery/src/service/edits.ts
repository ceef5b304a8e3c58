import type { Client, Focus, LabelledItems, Media, TaggedMedia } from '@mediabucket/client'
import type { Signal } from '@preact/signals'
import type { Connection } from './connection.ts'
import { isPreconditionFailed } from './connection.ts'

export const textNames = ['filename', 'alt_text', 'caption'] as const
export type TextName = (typeof textNames)[number]
/** The texts of an item that people edit; null if there is none. */
export type ItemTexts = Readonly<Record<TextName, string | null>>

type LabelChanges = Readonly<Record<string, string | null>>

/** Edits of an item besides its texts. */
interface OtherEdits {
  readonly labels?: LabelChanges
  /** Null removes it; left out if it was not edited. */
  readonly focus?: Focus | null | undefined
}

type SaveResult =
  | { readonly saved: Media }
  /** Others have changed a text or the focus that was edited too. Nothing was saved. */
  | { readonly conflict: TaggedMedia }

/** Edits of items. */
export interface Edits {
  /** Loads an item with its entity tag. */
  load(id: string): Promise<TaggedMedia>
  /**
   * Saves the texts and the focus that differ from those that were loaded, unless others have changed one of them since, and changes of labels,
   * where null removes one.
   */
  save(loaded: TaggedMedia, texts: ItemTexts, others?: OtherEdits): Promise<SaveResult>
  /** Sets labels of these items. Resolves to those that have them, and those that do not exist any more. */
  label(ids: readonly string[], labels: Readonly<Record<string, string>>): Promise<LabelledItems>
}

interface EditParts {
  readonly client: Client
  readonly connection: Connection
  /** Increased with each change of labels. */
  readonly labelChanges: Signal<number>
}

/** Saves are repeated at most this often if others change other texts of the item at the same time. */
const maxTries = 5

export function createEdits({ client, connection, labelChanges }: EditParts): Edits {
  const load = (id: string) => connection.watch(() => client.describeTagged(id))

  return {
    load,
    async label(ids, labels) {
      const result = await connection.watch(() => client.labelMany(ids, labels))
      labelChanges.value += 1
      return result
    },
    async save(loaded, texts, { labels = {}, focus } = {}) {
      const { id } = loaded.media
      const edited = textNames.filter((name) => texts[name] !== typedText(loaded.media[name]))
      const hasLabels = Object.keys(labels).length > 0
      const hasFocus = focus !== undefined && !isSameFocus(focus, loaded.media.focus)
      if (edited.length === 0 && !hasLabels && !hasFocus) return { saved: loaded.media }
      const changes = {
        ...Object.fromEntries(edited.map((name) => [name, texts[name]])),
        ...(hasLabels ? { labels } : {}),
        ...(hasFocus ? { focus } : {}),
      }
      let current = loaded
      for (let tries = 1; ; tries++) {
        const { etag } = current
        try {
          const saved = await connection.watch(() =>
            client.update(id, changes, etag === null ? {} : { ifMatch: etag }),
          )
          if (hasLabels) labelChanges.value += 1
          return { saved }
        } catch (error) {
          if (!isPreconditionFailed(error) || tries === maxTries) throw error
          // The first variant and edits of other texts also change the entity tag (docs/interface.md, M6).
          current = await load(id)
          const { media } = current
          const isTheirs = (name: TextName) =>
            typedText(media[name]) !== typedText(loaded.media[name]) && typedText(media[name]) !== texts[name]
          const isTheirFocus =
            hasFocus && !isSameFocus(media.focus, loaded.media.focus) && !isSameFocus(media.focus, focus)
          if (edited.some(isTheirs) || isTheirFocus) return { conflict: current }
        }
      }
    },
  }
}

export const isSameFocus = (one: Focus | null | undefined, other: Focus | null | undefined): boolean =>
  one?.x === other?.x && one?.y === other?.y

/** A text as a form returns it if it is not changed. */
export const typedText = (text: string | null | undefined): string | null =>
  text?.replace(/\r\n?/g, '\n').trim() || null
