import type { tokens as english } from './en.ts'

/** The texts of the page of tokens, and of dialogs that show secrets. */
export const tokens: typeof english = {
  about: 'Mit ihnen greifen Programme auf diesen Bucket zu.',
  loading: 'Die Tokens werden geladen…',
  failedToLoad: 'Die Tokens konnten nicht geladen werden.',
  more: 'Weitere Tokens anzeigen',
  create: 'Token erstellen',
  name: 'Name',
  unnamed: 'Ohne Namen',
  scopes: 'Berechtigungen',
  scopeNames: {
    'media:read': 'Dateien ansehen',
    'media:write': 'Dateien hochladen und bearbeiten',
    'media:delete': 'Dateien löschen',
    'tokens:manage': 'Tokens verwalten',
    'webhooks:manage': 'Webhooks verwalten',
  },
  noScope: 'Wähle mindestens eine Berechtigung.',
  missing: (scopes, count) =>
    `Das braucht ein Token mit ${count === 1 ? 'der Berechtigung' : 'den Berechtigungen'} ${scopes}, die deines nicht hat.`,
  missingCommand:
    'Dieser Befehl gibt ein Token aus, das alles Nötige darf. Führe ihn dort aus, wo der Dienst läuft, und melde dich dann mit dem neuen Token an:',
  copyCommand: 'Befehl kopieren',
  expiry: 'Gültig für',
  noExpiry: 'Ohne Ablauf',
  never: 'Nie',
  days: (days: number) => (days === 1 ? '1 Tag' : `${days} Tage`),
  hour: '1 Stunde',
  atOnce: 'Gar nicht',
  own: 'Diese Sitzung',
  user: 'Meldet sich mit einem Konto an',
  expired: 'Abgelaufen',
  revoked: 'Widerrufen',
  createdAt: 'Erstellt',
  lastUsed: 'Zuletzt benutzt',
  expires: 'Läuft ab',
  rotate: 'Ersetzen',
  rotateTitle: (name: string) => `„${name}“ ersetzen?`,
  rotateAbout:
    'Ein neues Token mit demselben Namen und denselben Berechtigungen wird erstellt. Gib es den Programmen, die das alte benutzen.',
  overlap: 'Das alte Token bleibt gültig für',
  revoke: 'Widerrufen',
  revokeTitle: (name: string) => `„${name}“ widerrufen?`,
  revokeAbout:
    'Programme, die es benutzen, verlieren sofort den Zugriff. Das kann nicht rückgängig gemacht werden.',
  revokeOwn: 'Du bist mit diesem Token angemeldet und wirst abgemeldet.',
  created: 'Das neue Token',
  shownOnce: 'Kopiere es jetzt. Es wird nicht noch einmal angezeigt.',
  newToken: 'Neues Token',
  copy: 'Token kopieren',
  shareX: 'Datei für ShareX',
}
