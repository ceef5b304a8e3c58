import type { slides as english } from './en.ts'

/** The texts of slides: what the viewer shows of a file. */
export const slides: typeof english = {
  openPdf: 'PDF öffnen',
  firstPage: 'Die erste Seite der PDF-Datei',
  open: 'In neuem Tab öffnen',
  noPreview: 'Für diese Art von Datei gibt es keine Vorschau. Lade sie herunter, um sie zu öffnen.',
  noPicture: 'Der Browser kann dieses Bild nicht anzeigen. Lade es herunter, um es anzusehen.',
  damaged: 'Dieses Bild ist beschädigt. Lade das Original erneut hoch.',
  noPlayback: 'Der Browser kann diese Datei nicht abspielen. Lade sie herunter, um sie abzuspielen.',
  noText: 'Dieser Text konnte nicht geladen werden. Versuche es später erneut oder lade die Datei herunter.',
  encoding: 'Zeichenkodierung',
  automatic: 'Automatisch',
  play: 'Animation abspielen',
  emptyText: 'Diese Datei ist leer.',
  textPreview: (shown: string, size: string) =>
    `Die ersten ${shown} von ${size}. Lade die Datei herunter, um alles zu lesen.`,
}
