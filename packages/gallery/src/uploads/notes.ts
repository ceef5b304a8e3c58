import { strings } from '../strings.ts'
import type { ChosenFile, Skipped } from './files/chosen-files.ts'

/** A line below the list of uploads about what is not in it. */
export interface Note {
  readonly id: number
  readonly text: string
  /** The paths it is about. */
  readonly paths: readonly string[]
  /** Something is missing that a person may want; such a note stays until it is closed. */
  readonly isBad: boolean
  readonly action: { readonly label: string; readonly run: () => void } | null
}

export type NewNote = Omit<Note, 'id'>

const plain = { isBad: false, action: null }

export function skippedNotes({ system, emptyFolders, unreadableFolders }: Skipped): NewNote[] {
  const { uploads } = strings
  return [
    { ...plain, text: uploads.systemFiles(system.length), paths: system },
    { ...plain, text: uploads.emptyFolders(emptyFolders.length), paths: emptyFolders },
    {
      ...plain,
      text: uploads.unreadableFolders(unreadableFolders.length),
      paths: unreadableFolders,
      isBad: true,
    },
  ].filter(({ paths }) => paths.length > 0)
}

export const duplicatesNote = (files: readonly ChosenFile[], addAgain: () => void): NewNote => ({
  text: strings.uploads.duplicates(files.length),
  paths: files.map(({ path }) => path),
  isBad: true,
  action: { label: strings.uploads.addAgain, run: addAgain },
})
