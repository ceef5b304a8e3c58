import type { Texts } from './en.ts'
import { formatCount } from './locale.ts'

const files = (count: number) => (count === 1 ? '1 Datei' : `${formatCount(count)} Dateien`)

const viewer: Texts['viewer'] = {
  label: (name: string) => `Datei: ${name}`,
  position: (position: number, total: number) => `${formatCount(position)} von ${formatCount(total)}`,
  previous: 'Vorige Datei',
  next: 'Nächste Datei',
  details: 'Details',
  copy: 'Link kopieren',
  download: 'Herunterladen',
  delete: 'Löschen',
  partlyShown: 'Dieses Bild ist beschädigt und nur teilweise zu sehen. Lade das Original erneut hoch.',
  loading: 'Wird geladen…',
  notLoaded: 'Die Anzeige konnte nicht geladen werden. Prüfe deine Verbindung und lade die Seite neu.',
  deleted: 'Diese Datei wurde gelöscht.',
  failed: 'Diese Datei konnte nicht geladen werden. Versuche es später erneut.',
}

const deleted: Texts['deleted'] = {
  done: (count: number) => `${files(count)} gelöscht.`,
  failed: (count: number, reason: string) =>
    count === 1
      ? `1 Datei konnte nicht gelöscht werden. ${reason}`
      : `${files(count)} konnten nicht gelöscht werden. ${reason}`,
  trashed: (count: number) => `${files(count)} in den Papierkorb verschoben.`,
  undo: 'Rückgängig',
  restored: (count: number) => `${files(count)} wiederhergestellt.`,
  missing: (count: number) => `${files(count)} ${count === 1 ? 'ist' : 'sind'} nicht mehr im Papierkorb.`,
  refused: (reason: string) => `Das ist nicht gelungen. ${reason}`,
}

const adding: Texts['adding'] = {
  drop: 'Zum Hochladen loslassen',
  dropNotAllowed: 'Dieses Token darf keine Dateien hochladen',
  dropNotAllowedHint: 'Melde dich mit einem Token an, das media:write erlaubt.',
  dropHint: (bucket: string) => `Dateien und Ordner werden nach „${bucket}“ hochgeladen.`,
  notAllowed:
    'Dieses Token darf keine Dateien hochladen. Melde dich mit einem Token an, das media:write erlaubt.',
  delayed: 'Das Hochladen beginnt, sobald der Server wieder antwortet.',
  notLoaded:
    'Das Programm zum Hochladen konnte nicht geladen werden. Prüfe deine Verbindung und lade die Seite neu.',
}

export const de: Texts = {
  product: 'Mediabucket',
  files,
  unnamed: 'Datei ohne Namen',
  byte: '1 Byte',
  units: ['Byte', 'kB', 'MB', 'GB', 'TB', 'PB'],
  close: 'Schließen',
  cancel: 'Abbrechen',
  dismiss: 'Ausblenden',
  tryAgain: 'Erneut versuchen',
  notLoaded: 'Das konnte nicht geladen werden. Prüfe deine Verbindung und lade die Seite neu.',
  skipToMedia: 'Zu den Dateien springen',
  back: 'Zurück zu den Dateien',
  done: 'Fertig',
  copied: 'Kopiert.',
  notCopied: 'Der Browser hat es nicht kopiert. Markiere den Text und kopiere ihn.',
  /** What `#trash` and similar addresses show, instead of files. */
  sections: { trash: 'Papierkorb', tokens: 'Tokens', webhooks: 'Webhooks' },

  signIn: {
    title: 'Bei deinem Bucket anmelden',
    about: 'Gib das Zugriffstoken des Buckets ein.',
    token: 'Zugriffstoken',
    show: 'Token anzeigen',
    hide: 'Token verbergen',
    keep: 'Einen Tag lang angemeldet bleiben',
    keepHint:
      'Leere dieses Feld auf einem gemeinsam genutzten Computer. Die Sitzung endet dann mit diesem Tab.',
    submit: 'Anmelden',
    busy: 'Anmeldung läuft…',
    noToken:
      'Kein Token? Der Server gibt beim ersten Start eines aus. Ein weiteres erstellt „npx mediabucket token create --bucket default“.',
    missing: 'Gib ein Token ein.',
    malformed:
      'Das ist kein Token. Tokens beginnen mit „mbkt_“ oder „mbks_“ und enthalten keine Leerzeichen.',
    refused:
      'Dieses Token ist ungültig. Es ist falsch geschrieben, abgelaufen oder widerrufen. Prüfe es oder nimm ein anderes.',
    cannotRead: (scopes: string) =>
      `Dieses Token darf keine Dateien ansehen. Seine Berechtigungen: ${scopes}. Nimm ein Token mit media:read.`,
    noScopes: 'keine',
    ended:
      'Du wurdest abgemeldet, weil das Token abgelaufen oder widerrufen ist. Melde dich mit einem anderen an.',
    signedOut: 'Du bist abgemeldet.',
    withIssuer: (name: string) => `Mit ${name} anmelden`,
    or: 'oder mit einem Token',
    issuerFailed: 'Die Anmeldung ist nicht gelungen. Versuche es noch einmal.',
    expired: 'Deine Anmeldung ist abgelaufen. Melde dich erneut an.',
    dayPassed: 'Deine Sitzung endete nach 24 Stunden. Melde dich erneut an.',
    resuming: 'Dein Bucket wird geöffnet…',
  },

  header: {
    upload: 'Hochladen',
    uploadFolder: 'Ordner hochladen',
    signOut: 'Abmelden',
    used: (size: string) => `${size} belegt`,
    usedOf: (size: string, limit: string) => `${size} von ${limit}`,
    itemsOf: (count: number, limit: number) => `${formatCount(count)} von ${formatCount(limit)} Dateien`,
    usage: 'Belegter Speicher',
  },

  settings: {
    label: 'Einstellungen',
    theme: 'Farben',
    themes: { system: 'Wie das System', light: 'Hell', dark: 'Dunkel' },
    language: 'Sprache',
  },

  signOut: {
    title: 'Jetzt abmelden?',
    about: (left: number) =>
      left === 1
        ? '1 Datei wird noch hochgeladen. Beim Abmelden wird das abgebrochen.'
        : `${formatCount(left)} Dateien werden noch hochgeladen. Beim Abmelden wird das abgebrochen.`,
    stay: 'Angemeldet bleiben',
    leave: 'Abmelden',
  },

  listing: {
    private: 'Privat',
    privateHint: 'Dateien brauchen ein Token des Buckets oder einen Link, der abläuft.',
    noThumbnail: 'Keine Vorschau: Das Bild ist beschädigt oder zu groß',
    loading: 'Die Dateien werden geladen…',
    failed: 'Die Dateien konnten nicht geladen werden',
    empty: 'Dieser Bucket ist leer',
    emptyHint:
      'Ziehe Dateien oder Ordner auf diese Seite, füge ein Bild aus der Zwischenablage ein oder wähle unten Dateien aus.',
    ask: 'Um Dateien bitten',
    emptyReadOnlyHint: 'Melde dich zum Hochladen mit einem Token an, das media:write erlaubt.',
    chooseFiles: 'Dateien auswählen',
    chooseFolder: 'Ordner auswählen',
  },

  view: { label: 'Ansicht', grid: 'Raster', list: 'Liste' },

  filter: {
    label: 'Suchen und filtern',
    search: 'Nach Namen suchen',
    kind: 'Art',
    labels: 'Labels',
    chosenLabels: 'Gewählte Labels',
    removeLabel: (label: string) => `${label} entfernen`,
    anyValue: 'Alle',
    noLabels: 'Keine Datei hat ein Label.',
    kinds: {
      all: 'Alle Arten',
      image: 'Bilder',
      video: 'Videos',
      audio: 'Audio',
      document: 'Dokumente',
      other: 'Andere Dateien',
    },
    time: 'Zeit',
    times: {
      all: 'Jederzeit',
      day: 'Letzte 24 Stunden',
      week: 'Letzte 7 Tage',
      month: 'Letzte 30 Tage',
      year: 'Letztes Jahr',
    },
    clear: 'Filter aufheben',
    matches: ({ count, isExact }: { count: number; isExact: boolean }) =>
      !isExact
        ? count === 1
          ? 'Mindestens 1 Datei passt'
          : `Mindestens ${formatCount(count)} Dateien passen`
        : count === 0
          ? 'Keine Datei passt'
          : count === 1
            ? '1 Datei passt'
            : `${formatCount(count)} Dateien passen`,
    none: 'Keine Datei passt',
    noneHint: 'Ändere die Suche oder hebe die Filter auf.',
  },

  timeline: {
    day: (day: string) => `Dateien: ${day}`,
    loaded: 'Die Dateien sind geladen',
    newestFirst: 'Neueste zuerst',
    oldestFirst: 'Älteste zuerst',
    switchOrder: 'Reihenfolge umkehren',
    orderBy: 'Reihenfolge',
    orderKeys: {
      added: 'Nach dem Hinzufügen',
      taken: 'Nach Aufnahmezeit',
      name: 'Nach Name',
    },
    names: {
      ascending: 'A bis Z',
      descending: 'Z bis A',
    },
    noName: 'Ohne Namen',
  },

  selection: {
    label: 'Ausgewählte Dateien',
    select: (name: string) => `${name} auswählen`,
    count: (count: number) => `${formatCount(count)} ausgewählt`,
  },

  deleted,

  link: {
    forEveryone: 'Für alle, bis der Link abläuft:',
    forTokens: 'Nur mit einem Token des Buckets:',
    withoutExpiry: 'Link ohne Ablauf',
    names: 'Namen in Links',
    needsToken: 'Der Bucket ist privat: Der Link funktioniert nur mit einem Token des Buckets.',
    lifetime: (hours: number) =>
      hours < 24 ? '1 Stunde' : hours === 24 ? '1 Tag' : `${formatCount(hours / 24)} Tage`,
    validFor: (time: string) => `Gültig für ${time}`,
    copied: (count: number) => (count === 1 ? 'Link kopiert.' : `${formatCount(count)} Links kopiert.`),
    failed: 'Der Browser hat das Kopieren verhindert. Kopiere den Link aus den Details der Datei.',
  },

  viewer,

  adding,

  connection: {
    lost: 'Der Server ist nicht erreichbar.',
    offline: 'Du bist offline.',
    retrying: 'Verbindung wird wiederhergestellt…',
    retryNow: 'Jetzt versuchen',
    back: 'Wieder verbunden.',
  },

  errors: {
    unreachable: 'Der Server ist nicht erreichbar. Prüfe, ob er läuft und ob du online bist.',
    unexpected:
      'Ein unerwarteter Fehler ist aufgetreten. Versuche es erneut; wenn er wieder auftritt, sieh im Protokoll des Servers nach.',
  },
}
