import { formatCount } from '../locale.ts'
import type { uploads as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 Datei' : `${formatCount(count)} Dateien`)

/** The texts of uploads and of their list. */
export const uploads: typeof english = {
  label: 'Uploads',
  sending: (done: number, all: number) => `Hochladen: ${formatCount(done)} von ${files(all)}`,
  waitingForServer: 'Warten auf den Server',
  paused: (left: number) => `${files(left)} angehalten`,
  finished: (count: number) => `${files(count)} hochgeladen`,
  failed: (count: number) => `${files(count)} nicht hochgeladen`,
  partly: (done: number, all: number) => `${formatCount(done)} von ${files(all)} hochgeladen`,
  toChooseAgain: (count: number) => `${files(count)} erneut auszuwählen`,
  nothing: 'Nichts hochzuladen',
  reading: (count: number) =>
    count === 0 ? 'Die Ordner werden gelesen…' : `Die Ordner werden gelesen: bisher ${files(count)}`,
  partOf: (done: string, all: string) => `${done} von ${all}`,
  speed: (size: string) => `${size}/s`,
  timeLeft: (time: string) => `noch ${time}`,
  fewSeconds: 'wenige Sekunden',
  seconds: (count: number) => `${count} s`,
  minutes: (count: number) => `${count} min`,
  hours: (count: number, minutes: number) => `${count} h ${minutes} min`,
  notDone: (failed: number) => `${formatCount(failed)} nicht hochgeladen`,
  continuesLater:
    'Du kannst diese Seite schließen. Das Hochladen geht weiter, wenn du sie in diesem Browser wieder öffnest.',
  keepOpen: 'Lass diese Seite offen, bis alles hochgeladen ist.',
  systemFiles: (count: number) =>
    `${count === 1 ? '1 Systemdatei' : `${formatCount(count)} Systemdateien`} ausgelassen (etwa .DS_Store und Thumbs.db)`,
  emptyFolders: (count: number) =>
    `${count === 1 ? '1 leerer Ordner' : `${formatCount(count)} leere Ordner`} ausgelassen`,
  unreadableFolders: (count: number) =>
    count === 1
      ? '1 Ordner konnte nicht gelesen werden. Nichts daraus wurde hochgeladen.'
      : `${formatCount(count)} Ordner konnten nicht gelesen werden. Nichts daraus wurde hochgeladen.`,
  duplicates: (count: number) =>
    count === 1
      ? '1 Datei mit gleichem Namen, gleicher Größe und gleichem Datum ist schon in der Liste. Sie wurde nicht erneut hinzugefügt.'
      : `${files(count)} mit gleichem Namen, gleicher Größe und gleichem Datum sind schon in der Liste. Sie wurden nicht erneut hinzugefügt.`,
  addAgain: 'Erneut hinzufügen',
  copy: 'Links kopieren',
  retryFailed: 'Fehlgeschlagene erneut versuchen',
  showMore: (count: number) => `${formatCount(count)} weitere anzeigen`,
  overall: 'Alle Uploads',
  uploadOf: (name: string) => `Upload von ${name}`,
  progress: (sent: string, size: string) => `${sent} von ${size}`,
  waiting: 'Wartet',
  inProgress: 'Wird hochgeladen',
  pausedAll: 'Angehalten',
  pausedAt: (sent: string, size: string) => `Angehalten bei ${sent} von ${size}`,
  done: 'Hochgeladen',
  chooseAgain: 'Wähle diese Datei zum Fortsetzen erneut aus',
  pause: (name: string) => `${name} anhalten`,
  resume: (name: string) => `${name} fortsetzen`,
  retry: (name: string) => `${name} erneut versuchen`,
  cancel: (name: string) => `${name} abbrechen`,
  pauseAll: 'Alle anhalten',
  resumeAll: 'Alle fortsetzen',
  collapse: 'Weniger anzeigen',
  expand: 'Alle Uploads anzeigen',
  close: 'Liste der Uploads schließen',
  cancelAll: 'Alle abbrechen',
  more: (count: number) => `und ${formatCount(count)} weitere`,
  continued: (count: number) => `${files(count)} vom letzten Besuch: Das Hochladen geht weiter.`,
  unknown:
    'Der Server hat diese Datei ohne Begründung abgelehnt. Versuche es erneut; wenn es wieder geschieht, sieh im Protokoll des Servers nach.',
  unreadable:
    'Diese Datei konnte nicht gelesen werden: Sie wurde verschoben oder gelöscht, oder du darfst sie nicht lesen.',
  changed: 'Diese Datei wurde nach der Auswahl geändert, verschoben oder gelöscht. Wähle sie erneut aus.',
  tooLarge: 'Diese Datei ist größer, als der Server erlaubt.',
  noRoom: (limit: string) => `Diese Datei passt nicht: Der Bucket ist auf ${limit} begrenzt.`,
  tooLargeFor: (limit: string) => `Diese Datei ist zu groß: Der Server erlaubt bis zu ${limit} je Datei.`,
}
