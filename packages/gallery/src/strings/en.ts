import { formatCount } from './locale.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

const viewer = {
  label: (name: string) => `File: ${name}`,
  position: (position: number, total: number) => `${formatCount(position)} of ${formatCount(total)}`,
  previous: 'Previous file',
  next: 'Next file',
  details: 'Details',
  copy: 'Copy link',
  download: 'Download',
  delete: 'Delete',
  partlyShown: 'This picture is damaged and only partly shown. Upload the original again.',
  loading: 'Loading…',
  notLoaded: 'The viewer could not be loaded. Check your connection and reload the page.',
  deleted: 'This file was deleted.',
  failed: 'This file could not be loaded. Try again later.',
}

/** What a deletion has done. */
const deleted = {
  done: (count: number) => `${files(count)} deleted.`,
  failed: (count: number, reason: string) => `${files(count)} could not be deleted. ${reason}`,
  trashed: (count: number) => `${files(count)} moved to the trash.`,
  undo: 'Undo',
  restored: (count: number) => `${files(count)} restored.`,
  missing: (count: number) => `${files(count)} ${count === 1 ? 'is' : 'are'} no longer in the trash.`,
  refused: (reason: string) => `This did not succeed. ${reason}`,
}

/** Before the uploader is loaded. */
const adding = {
  drop: 'Drop to upload',
  dropNotAllowed: 'This token cannot upload files',
  dropNotAllowedHint: 'Sign in with a token that has the scope media:write.',
  dropHint: (bucket: string) => `Files and folders are uploaded to “${bucket}”.`,
  notAllowed: 'This token cannot upload files. Sign in with a token that has the scope media:write.',
  delayed: 'The uploads start when the server responds again.',
  notLoaded: 'The uploader could not be loaded. Check your connection and reload the page.',
}

/** All texts of the user interface, in English. */
export const en = {
  product: 'Mediabucket',
  files,
  unnamed: 'Unnamed file',
  byte: '1 byte',
  /** Each is 1000 of the one before. */
  units: ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'],
  close: 'Close',
  cancel: 'Cancel',
  dismiss: 'Dismiss',
  tryAgain: 'Try again',
  notLoaded: 'This could not be loaded. Check your connection and reload the page.',
  skipToMedia: 'Skip to the files',
  back: 'Back to the files',
  done: 'Done',
  copied: 'Copied.',
  notCopied: 'The browser did not copy it. Select the text and copy it.',
  /** What `#trash` and similar addresses show, instead of files. */
  sections: { trash: 'Trash', tokens: 'Tokens', webhooks: 'Webhooks' },

  signIn: {
    title: 'Sign in to your bucket',
    about: 'Enter the access token of the bucket.',
    token: 'Access token',
    show: 'Show the token',
    hide: 'Hide the token',
    keep: 'Keep me signed in for a day',
    keepHint: 'On a shared computer, clear this box. The session then ends when you close this tab.',
    submit: 'Sign in',
    busy: 'Signing in…',
    noToken:
      'No token? The server prints one when it starts for the first time. To create another, run “npx mediabucket token create --bucket default”.',
    missing: 'Enter a token.',
    malformed: 'This is not a token. Tokens begin with “mbkt_” or “mbks_” and contain no spaces.',
    refused: 'This token is not valid. It is mistyped, expired or revoked. Check it or use another one.',
    cannotRead: (scopes: string) =>
      `This token cannot view files. Its scopes: ${scopes}. Use a token with the scope media:read.`,
    noScopes: 'none',
    ended: 'You were signed out because the token expired or was revoked. Sign in with another token.',
    signedOut: 'You are signed out.',
    withIssuer: (name: string) => `Sign in with ${name}`,
    or: 'or with a token',
    issuerFailed: 'The sign-in did not succeed. Try again.',
    expired: 'Your sign-in has expired. Sign in again.',
    dayPassed: 'Your session ended after 24 hours. Sign in again.',
    resuming: 'Opening your bucket…',
  },

  header: {
    upload: 'Upload',
    uploadFolder: 'Upload a folder',
    signOut: 'Sign out',
    used: (size: string) => `${size} used`,
    usedOf: (size: string, limit: string) => `${size} of ${limit}`,
    itemsOf: (count: number, limit: number) => `${formatCount(count)} of ${formatCount(limit)} files`,
    usage: 'Space used',
  },

  settings: {
    label: 'Settings',
    theme: 'Theme',
    themes: { system: 'As the system', light: 'Light', dark: 'Dark' },
    language: 'Language',
  },

  signOut: {
    title: 'Sign out now?',
    about: (left: number) =>
      `${left === 1 ? '1 file is' : `${formatCount(left)} files are`} still being uploaded. Signing out cancels ${left === 1 ? 'this upload' : 'these uploads'}.`,
    stay: 'Stay signed in',
    leave: 'Sign out',
  },

  listing: {
    private: 'Private',
    privateHint: 'Files need a token of the bucket or a link that expires.',
    noThumbnail: 'No preview: the picture is damaged or too large',
    loading: 'Loading the files…',
    failed: 'The files could not be loaded',
    empty: 'This bucket is empty',
    emptyHint: 'Drop files or folders anywhere on this page, paste a picture, or choose files below.',
    ask: 'Ask for files',
    emptyReadOnlyHint: 'To upload files, sign in with a token that has the scope media:write.',
    chooseFiles: 'Choose files',
    chooseFolder: 'Choose a folder',
  },

  view: { label: 'View', grid: 'Grid', list: 'List' },

  filter: {
    label: 'Search and filter',
    search: 'Search by name',
    kind: 'Kind',
    labels: 'Labels',
    chosenLabels: 'Chosen labels',
    removeLabel: (label: string) => `Remove ${label}`,
    anyValue: 'Any',
    noLabels: 'No file has a label.',
    kinds: {
      all: 'All kinds',
      image: 'Pictures',
      video: 'Videos',
      audio: 'Audio',
      document: 'Documents',
      other: 'Other files',
    },
    time: 'Time',
    times: {
      all: 'Any time',
      day: 'Last 24 hours',
      week: 'Last 7 days',
      month: 'Last 30 days',
      year: 'Last year',
    },
    clear: 'Clear the filters',
    matches: ({ count, isExact }: { count: number; isExact: boolean }) =>
      !isExact
        ? count === 1
          ? 'At least 1 file matches'
          : `At least ${formatCount(count)} files match`
        : count === 0
          ? 'No file matches'
          : count === 1
            ? '1 file matches'
            : `${formatCount(count)} files match`,
    none: 'No file matches',
    noneHint: 'Change the search or clear the filters.',
  },

  timeline: {
    day: (day: string) => `Files of ${day}`,
    loaded: 'The files are loaded',
    newestFirst: 'Newest first',
    oldestFirst: 'Oldest first',
    switchOrder: 'Reverse the order',
    orderBy: 'Order',
    orderKeys: {
      added: 'By time added',
      taken: 'By time taken',
      name: 'By name',
    },
    names: {
      ascending: 'A to Z',
      descending: 'Z to A',
    },
    noName: 'No name',
  },

  selection: {
    label: 'Selected files',
    select: (name: string) => `Select ${name}`,
    count: (count: number) => `${formatCount(count)} selected`,
  },

  deleted,

  link: {
    forEveryone: 'For everyone, until the link expires:',
    forTokens: 'Only with a token of the bucket:',
    withoutExpiry: 'Link without an expiry',
    names: 'Names in links',
    needsToken: 'The bucket is private: the link works only with a token of the bucket.',
    lifetime: (hours: number) =>
      hours < 24 ? '1 hour' : hours === 24 ? '1 day' : `${formatCount(hours / 24)} days`,
    validFor: (time: string) => `Valid for ${time}`,
    copied: (count: number) => (count === 1 ? 'Link copied.' : `${formatCount(count)} links copied.`),
    failed: 'The browser blocked copying. Open the details of the file and copy the link from there.',
  },

  viewer,

  adding,

  connection: {
    lost: 'The server cannot be reached.',
    offline: 'You are offline.',
    retrying: 'Reconnecting…',
    retryNow: 'Try now',
    back: 'Connected again.',
  },

  errors: {
    unreachable: 'The server cannot be reached. Check that it is running and that you are online.',
    unexpected: 'An unexpected error occurred. Try again; if it happens again, see the server’s log.',
  },
}

/** Every language has the same texts. */
export type Texts = typeof en
