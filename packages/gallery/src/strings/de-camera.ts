/** What cameras write into pictures. */
export const camera = {
  taken: 'Aufgenommen',
  camera: 'Kamera',
  lens: 'Objektiv',
  exposure: 'Belichtung',
  focalLength: 'Brennweite',
  location: 'Standort',
  locationHint: 'Alle, die die Datei oder ihren Link bekommen, können den Standort lesen.',
}

/** The question before a picture with a location is shared. */
export const location = {
  title: 'Standort im Bild',
  warning: (name: string) =>
    `„${name}“ enthält den Ort der Aufnahme. Alle, die die Datei oder ihren Link bekommen, können ihn lesen.`,
  notExaminedTitle: 'Standort nicht geprüft',
  notExamined: (name: string) =>
    `„${name}“ konnte nicht geladen werden, um zu prüfen, ob der Ort der Aufnahme darin steht. Wenn ja, können ihn alle lesen, die die Datei oder ihren Link bekommen.`,
  share: 'Trotzdem teilen',
}
