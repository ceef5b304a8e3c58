import { formatCount } from '../locale.ts'
import type { links as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 Datei' : `${formatCount(count)} Dateien`)

export const links: typeof english = {
  defaultTitle: 'Dateien senden',
  checking: 'Der Link wird geöffnet…',
  choosePhotos: 'Fotos auswählen',
  choosePhotosAndVideos: 'Fotos und Videos auswählen',
  chooseFiles: 'Dateien auswählen',
  takePhoto: 'Foto aufnehmen',
  orDrop: 'oder hierher ziehen',
  drop: 'Zum Senden hier ablegen',
  limits: 'Was du senden kannst',
  progress: 'Deine Dateien',
  thanks: (count) =>
    count === 1
      ? 'Danke! Deine Datei ist angekommen.'
      : `Danke! Alle ${formatCount(count)} Dateien sind angekommen.`,
  arrived: (count) => `${files(count)} angekommen`,
  more: 'Du kannst diese Seite schließen oder mehr senden.',
  canClose: 'Du kannst diese Seite schließen.',
  continuesLater:
    'Du kannst diese Seite schließen. Das Hochladen geht weiter, wenn du den Link in diesem Browser wieder öffnest.',
  complete: 'Dieser Link hat alle Dateien erhalten',
  completeHint: 'Um mehr zu senden, frage die Person, die dir den Link gegeben hat.',
  invalid: 'Dieser Link funktioniert nicht',
  invalidHint:
    'Er ist abgelaufen, widerrufen oder unvollständig. Bitte die Person, die ihn dir gegeben hat, um einen neuen.',
  unreachable: 'Der Dienst ist nicht erreichbar',
  unreachableHint: 'Prüfe deine Verbindung. Die Seite versucht es von selbst wieder.',
  remove: (name) => `Entfernen: ${name}`,
  retry: (name) => `Erneut versuchen: ${name}`,
  upTo: (count) => `Bis zu ${files(count)}`,
  left: (count, of) => `Noch ${formatCount(count)} von ${files(of)}`,
  total: (size) => `Zusammen ${size}`,
  leftOfTotal: (size, of) => `Noch ${size} von ${of}`,
  each: (size) => `Je Datei höchstens ${size}`,
  onlyKinds: (kinds) => `Nur ${kinds}`,
  kinds: { image: 'Bilder', video: 'Videos', audio: 'Audio', text: 'Texte', application: 'Dokumente' },
  until: (time) => `Der Link gilt bis ${time}`,
  expireAfter: (days) =>
    `Die Dateien werden nach ${days === 1 ? '1 Tag' : `${formatCount(days)} Tagen`} gelöscht`,
  noneLeft: 'Dieser Link nimmt keine Dateien mehr an.',
  tooMuch: 'Das ist mehr, als der Link noch annimmt.',
  tooLarge: (limit) => `Diese Datei ist zu groß: Der Link erlaubt bis zu ${limit} je Datei.`,
  wrongType: (kinds) => `Dieser Link nimmt nur ${kinds} an.`,
  askAbout:
    'Wer den Link öffnet, sendet Dateien in diesen Bucket, sieht nichts davon und braucht kein Konto.',
  moreFields: 'Mehr',
  title: 'Titel',
  note: 'Hinweis',
  noteHint: 'Steht auf der Seite, zum Beispiel wofür die Dateien sind',
  howMany: 'Wie viele Dateien',
  anyNumber: 'Beliebig viele',
  which: 'Welche Dateien',
  any: 'Beliebige Dateien',
  pictures: 'Bilder',
  picturesAndVideos: 'Bilder und Videos',
  documents: 'PDF-Dokumente',
  maxSize: 'Größte Datei',
  maxTotal: 'Alle Dateien zusammen',
  noLimit: 'Keine Grenze',
  deleteAfter: 'Tage bis zum Löschen der Dateien',
  never: 'Nie',
  labels: 'Labels der Dateien',
  validFor: 'Der Link gilt',
  create: 'Link erstellen',
  created: 'Der Link',
  createdAbout:
    'Sende ihn denen, die hochladen sollen, oder lass sie den Code scannen. Er wird nur jetzt angezeigt.',
  copy: 'Link kopieren',
  code: 'QR-Code des Links',
  badge: 'Nur Uploads',
  received: (count, size) => (count === 0 ? 'Noch nichts angekommen' : `${files(count)} angekommen, ${size}`),
}
