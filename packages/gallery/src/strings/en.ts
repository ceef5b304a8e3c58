import { formatCount } from '../format/count.ts'
import { camera, location } from './en-camera.ts'
import { deletion, trash } from './en-deletion.ts'
import { tokens } from './en-tokens.ts'
import { uploads } from './en-uploads.ts'
import { details, viewer } from './en-viewer.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

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
    malformed: 'This is not a token. Tokens begin with “mbkt_” and contain no spaces.',
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
    title: (bucket: string, page: number) => `${bucket}, page ${formatCount(page)}`,
    range: (from: number, to: number, total: number) =>
      from === to
        ? `${formatCount(from)} of ${files(total)}`
        : `${formatCount(from)}–${formatCount(to)} of ${files(total)}`,
    grid: 'Files on this page',
    loading: 'Loading the files…',
    loaded: (page: number, last: number) => `Page ${formatCount(page)} of ${formatCount(last)}`,
    failed: 'The files could not be loaded',
    pastEnd: (page: number) => `Page ${formatCount(page)} does not exist`,
    pastEndHint: (last: number) =>
      last === 1 ? 'The bucket has only one page.' : `The last page is ${formatCount(last)}.`,
    goToLastPage: 'Go to the last page',
    empty: 'This bucket is empty',
    emptyHint: 'Drop files or folders anywhere on this page, paste a picture, or choose files below.',
    emptyReadOnlyHint: 'To upload files, sign in with a token that has the scope media:write.',
    chooseFiles: 'Choose files',
    chooseFolder: 'Choose a folder',
  },

  view: { label: 'View', grid: 'Grid', list: 'List', pages: 'Pages' },

  filter: {
    label: 'Search and filter',
    search: 'Search by name',
    kind: 'Kind',
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
  },

  pager: {
    label: 'Pages',
    previous: 'Previous page',
    next: 'Next page',
    page: (page: number) => `Page ${formatCount(page)}`,
    jump: 'Go to page',
    of: (last: number) => `of ${formatCount(last)}`,
    go: 'Go',
    range: (last: number) => `Enter a page number from 1 to ${formatCount(last)}.`,
  },

  selection: {
    label: 'Selected files',
    select: (name: string) => `Select ${name}`,
    count: (count: number) => `${formatCount(count)} selected`,
    allOnPage: 'Select all on this page',
    copy: 'Copy links',
    delete: 'Delete',
    clear: 'Clear the selection',
    all: 'Select all',
    selecting: 'Selecting…',
    copyAs: 'Copy links as…',
    form: { plain: 'Plain links', markdown: 'Markdown', html: 'HTML' },
    zip: 'Download as ZIP',
    zipStarted: (count: number) =>
      `Packing ${files(count)}. The download starts when the archive is complete.`,
    zipFailed: 'The archive could not be created, because a file could not be downloaded. Try again.',
  },

  deletion,
  tokens,
  trash,

  link: {
    forEveryone: 'For everyone, until the link expires:',
    forTokens: 'Only with a token of the bucket:',
    withoutExpiry: 'Link without an expiry',
    needsToken: 'The bucket is private: the link works only with a token of the bucket.',
    lifetime: (hours: number) =>
      hours < 24 ? '1 hour' : hours === 24 ? '1 day' : `${formatCount(hours / 24)} days`,
    validFor: (time: string) => `Valid for ${time}`,
    copied: (count: number) => (count === 1 ? 'Link copied.' : `${formatCount(count)} links copied.`),
    failed: 'The browser blocked copying. Open the details of the file and copy the link from there.',
  },

  camera,
  location,

  viewer,
  details,

  uploads,

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
