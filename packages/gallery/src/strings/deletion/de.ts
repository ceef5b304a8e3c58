import { formatCount } from '../locale.ts'
import type { deletion as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 Datei' : `${formatCount(count)} Dateien`)

/** The texts of the question before a deletion, and of its progress. */
export const deletion: typeof english = {
  title: (count: number) => (count === 1 ? 'Diese Datei löschen?' : `${files(count)} löschen?`),
  one: (name: string) =>
    `„${name}“ wird für alle gelöscht, die den Link haben. Das kann nicht rückgängig gemacht werden.`,
  many: 'Sie werden für alle gelöscht, die ihre Links haben. Das kann nicht rückgängig gemacht werden.',
  confirm: (count: number) => (count === 1 ? 'Löschen' : `${files(count)} löschen`),
  busy: (done: number, count: number) => `${formatCount(done + 1)} von ${formatCount(count)} wird gelöscht…`,
  moving: (count: number) =>
    count === 1
      ? '1 Datei wird in den Papierkorb verschoben…'
      : `${files(count)} werden in den Papierkorb verschoben…`,
}
