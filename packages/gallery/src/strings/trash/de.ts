import { formatCount } from '../locale.ts'
import type { trash as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 Datei' : `${formatCount(count)} Dateien`)

/** The texts of the trash. */
export const trash: typeof english = {
  about: (days: number) =>
    days === 0
      ? 'Dateien, die jetzt gelöscht werden, kommen nicht in den Papierkorb.'
      : `Gelöschte Dateien bleiben ${days === 1 ? '1 Tag' : `${formatCount(days)} Tage`} hier.`,
  all: 'Alle angezeigten auswählen',
  list: 'Gelöschte Dateien',
  loading: 'Der Papierkorb wird geladen…',
  failedToLoad: 'Der Papierkorb konnte nicht geladen werden',
  none: 'Der Papierkorb ist leer',
  deletedAt: (time: string) => `Gelöscht: ${time}`,
  left: (days: number) => (days === 1 ? 'noch 1 Tag' : `noch ${formatCount(days)} Tage`),
  more: 'Mehr anzeigen',
  restore: 'Wiederherstellen',
  delete: 'Endgültig löschen',
  empty: 'Papierkorb leeren',
  confirmDelete: (count: number) =>
    count === 1 ? 'Diese Datei endgültig löschen?' : `${files(count)} endgültig löschen?`,
  confirmEmpty: 'Alle Dateien im Papierkorb löschen?',
  forGood: 'Das kann nicht rückgängig gemacht werden.',
  deleted: (count: number) => `${files(count)} endgültig gelöscht.`,
  emptied: 'Der Papierkorb ist jetzt leer.',
}
