import { formatCount } from '../format/count.ts'
import type { Texts } from './en.ts'

const files = (count: number) => (count === 1 ? '1 Datei' : `${formatCount(count)} Dateien`)

export const deletion: Texts['deletion'] = {
  title: (count: number) => (count === 1 ? 'Diese Datei löschen?' : `${files(count)} löschen?`),
  one: (name: string) =>
    `„${name}“ wird für alle gelöscht, die den Link haben. Das kann nicht rückgängig gemacht werden.`,
  many: 'Sie werden für alle gelöscht, die ihre Links haben. Das kann nicht rückgängig gemacht werden.',
  confirm: (count: number) => (count === 1 ? 'Löschen' : `${files(count)} löschen`),
  busy: (done: number, count: number) => `${formatCount(done + 1)} von ${formatCount(count)} wird gelöscht…`,
  done: (count: number) => `${files(count)} gelöscht.`,
  onOtherPages: (count: number) =>
    count === 1
      ? '1 davon ist auf einer anderen Seite.'
      : `${formatCount(count)} davon sind auf anderen Seiten.`,
  failed: (count: number, reason: string) =>
    count === 1
      ? `1 Datei konnte nicht gelöscht werden. ${reason}`
      : `${files(count)} konnten nicht gelöscht werden. ${reason}`,
  trashed: (count: number) => `${files(count)} in den Papierkorb verschoben.`,
  moving: (count: number) =>
    count === 1
      ? '1 Datei wird in den Papierkorb verschoben…'
      : `${files(count)} werden in den Papierkorb verschoben…`,
  undo: 'Rückgängig',
}

export const trash: Texts['trash'] = {
  title: 'Papierkorb',
  titleOf: (bucket: string) => `${bucket}, Papierkorb`,
  about: (days: number) =>
    days === 0
      ? 'Dateien, die jetzt gelöscht werden, kommen nicht in den Papierkorb.'
      : `Gelöschte Dateien bleiben ${days === 1 ? '1 Tag' : `${formatCount(days)} Tage`} hier.`,
  back: 'Zurück zu den Dateien',
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
  restored: (count: number) => `${files(count)} wiederhergestellt.`,
  deleted: (count: number) => `${files(count)} endgültig gelöscht.`,
  emptied: 'Der Papierkorb ist jetzt leer.',
  missing: (count: number) => `${files(count)} ${count === 1 ? 'ist' : 'sind'} nicht mehr im Papierkorb.`,
  failed: (reason: string) => `Das ist nicht gelungen. ${reason}`,
}
