import { strings } from '../strings.ts'
import type { ChosenFile, Skipped } from './chosen-files.ts'

/** A note in the list of uploads about files that were not added. It may be there before the texts of uploads are loaded. */
export interface Note {
  readonly id: number
  text(): string
  readonly paths: readonly string[]
  /** Whether a person may miss these files. The list does not close by itself while it has such a note. */
  readonly isBad: boolean
  readonly action: { readonly label: string; readonly run: () => void } | null
}

export type NewNote = Omit<Note, 'id'>

const defaults = { isBad: false, action: null }

export function skippedNotes({ system, emptyFolders, unreadableFolders }: Skipped): NewNote[] {
  return [
    { ...defaults, text: () => strings.uploads.systemFiles(system.length), paths: system },
    { ...defaults, text: () => strings.uploads.emptyFolders(emptyFolders.length), paths: emptyFolders },
    {
      ...defaults,
      text: () => strings.uploads.unreadableFolders(unreadableFolders.length),
      paths: unreadableFolders,
      isBad: true,
    },
  ].filter(({ paths }) => paths.length > 0)
}

export const duplicatesNote = (files: readonly ChosenFile[], addAgain: () => void): NewNote => ({
  text: () => strings.uploads.duplicates(files.length),
  paths: files.map(({ path }) => path),
  isBad: true,
  action: { label: strings.uploads.addAgain, run: addAgain },
})
