import { formatCount } from '../locale.ts'
import type { details as english } from './en.ts'

/** The texts of the details of a file, and of the form that edits them. */
export const details: typeof english = {
  title: 'Details',
  name: 'Name',
  path: 'Pfad',
  type: 'Typ',
  size: 'Größe',
  sizeExact: (size: string, bytes: number) => (bytes < 1000 ? size : `${size} (${formatCount(bytes)} Byte)`),
  dimensions: 'Abmessungen',
  pixels: (width: number, height: number) => `${formatCount(width)} × ${formatCount(height)} Pixel`,
  added: 'Hinzugefügt',
  expires: 'Läuft ab',
  hash: 'SHA-256',
  link: 'Link',
  altText: 'Alternativtext',
  altTextHint: 'Beschreibt das Bild für Menschen, die es nicht sehen.',
  caption: 'Bildunterschrift',
  labels: 'Labels',
  edit: 'Bearbeiten',
  save: 'Speichern',
  saved: 'Gespeichert.',
  notSaved: (reason: string) => `Die Änderungen wurden nicht gespeichert. ${reason}`,
  conflict:
    'Andere haben diese Datei geändert, seit du das Formular geöffnet hast. Es wurde nichts gespeichert. Vergleiche die Texte; speichere dann deine oder übernimm ihre.',
  theirs: 'Von anderen gespeichert:',
  noText: 'kein Text',
  useTheirs: 'Übernehmen',
  useTheirsOf: (label: string) => `Übernehmen: ${label}`,
  saveMine: 'Meine speichern',
  focus: {
    legend: 'Bildschwerpunkt',
    hint: 'Kleinere Größen, die das Bild beschneiden, zeigen diesen Punkt. Klicke in das Bild, oder bewege den Punkt mit den Pfeiltasten. Esc macht das rückgängig.',
    none: 'Es ist kein Punkt gesetzt.',
    at: (left: number, top: number) => `${left.toFixed(0)} % von links, ${top.toFixed(0)} % von oben`,
    clear: 'Punkt entfernen',
    crops: 'Was die beschnittenen Größen zeigen',
    crop: (name: string, width: number, height: number) => `${name}, ${width} × ${height}`,
  },
  /** What cameras write into pictures. */
  camera: {
    taken: 'Aufgenommen',
    camera: 'Kamera',
    lens: 'Objektiv',
    exposure: 'Belichtung',
    focalLength: 'Brennweite',
    location: 'Standort',
    locationHint: 'Alle, die die Datei oder ihren Link bekommen, können den Standort lesen.',
  },
  /** The question before a picture with a location is shared. */
  location: {
    title: 'Standort im Bild',
    warning: (name: string) =>
      `„${name}“ enthält den Ort der Aufnahme. Alle, die die Datei oder ihren Link bekommen, können ihn lesen.`,
    notExaminedTitle: 'Standort nicht geprüft',
    notExamined: (name: string) =>
      `„${name}“ konnte nicht geladen werden, um zu prüfen, ob der Ort der Aufnahme darin steht. Wenn ja, können ihn alle lesen, die die Datei oder ihren Link bekommen.`,
    share: 'Trotzdem teilen',
  },
}
