import { formatCount } from './format/count.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

/** Every word that people read. */
export const strings = {
  product: 'Mediabucket',
  files,
  unnamed: 'Unnamed file',
  byte: '1 byte',
  /** In steps of 1000. */
  units: ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'],
  close: 'Close',
  cancel: 'Cancel',
  dismiss: 'Dismiss',
  tryAgain: 'Try again',
  skipToMedia: 'Skip to the files',

  signIn: {
    title: 'Sign in to your bucket',
    about: 'Enter the access token of the bucket.',
    token: 'Access token',
    show: 'Show the token',
    hide: 'Hide the token',
    keep: 'Keep me signed in for a day',
    keepAbout: 'On a shared computer, untick this: the session then ends when you close this tab.',
    submit: 'Sign in',
    busy: 'Signing in…',
    where:
      'The first start of the service prints a token. “npx mediabucket token create --bucket default” creates another.',
    missing: 'Enter a token first.',
    malformed: 'This is not a token. A token begins with “mbkt_” and has no spaces.',
    refused: 'This token is not valid: it is mistyped, has expired, or was revoked.',
    mayNotRead: (scopes: string) =>
      `This token may not look at files: it has ${scopes}. Use one with the scope media:read.`,
    noScopes: 'no scope at all',
    ended: 'You were signed out: the token has expired or was revoked. Sign in with another one.',
    signedOut: 'You are signed out.',
    dayPassed: 'You were signed out, because a day has passed. Sign in again.',
    resuming: 'Opening your bucket…',
  },

  header: {
    actions: 'Bucket',
    upload: 'Upload',
    uploadFolder: 'Upload a folder',
    signOut: 'Sign out',
    used: (size: string) => `${size} used`,
    usedOf: (size: string, limit: string) => `${size} of ${limit}`,
    itemsOf: (count: number, limit: number) => `${formatCount(count)} of ${formatCount(limit)} files`,
    usage: 'Space used',
  },

  signOut: {
    title: 'Sign out now?',
    about: (left: number) =>
      `${left === 1 ? '1 file is' : `${formatCount(left)} files are`} still being uploaded. Signing out cancels ${left === 1 ? 'this upload' : 'these uploads'}.`,
    stay: 'Stay',
    leave: 'Sign out',
  },

  listing: {
    noThumbnail: 'No preview: damaged or too large',
    title: (bucket: string, page: number) => `${bucket}, page ${formatCount(page)}`,
    range: (from: number, to: number, total: number) =>
      from === to
        ? `${formatCount(from)} of ${files(total)}`
        : `${formatCount(from)}–${formatCount(to)} of ${files(total)}`,
    grid: 'Files on this page',
    loading: 'Loading the files…',
    loaded: (page: number, last: number) => `Page ${formatCount(page)} of ${formatCount(last)}`,
    failed: 'This page could not be loaded',
    pastEnd: (page: number) => `There is no page ${formatCount(page)}`,
    pastEndAbout: (last: number) =>
      last === 1 ? 'The bucket has one page.' : `The last page is ${formatCount(last)}.`,
    toLast: 'Go to the last page',
    empty: 'Nothing here yet',
    emptyAbout: 'Drop files or folders anywhere on this page, paste a picture, or choose them here.',
    emptyReadOnly: 'There are no files in this bucket, and this token may not add any.',
    chooseFiles: 'Choose files',
    chooseFolder: 'Choose a folder',
  },

  pager: {
    label: 'Pages',
    previous: 'Previous page',
    next: 'Next page',
    page: (page: number) => `Page ${formatCount(page)}`,
    jump: 'Go to page',
    of: (last: number) => `of ${formatCount(last)}`,
    go: 'Go',
    range: (last: number) => `Enter a page from 1 to ${formatCount(last)}`,
  },

  selection: {
    label: 'Selected files',
    select: (name: string) => `Select ${name}`,
    count: (count: number) => `${formatCount(count)} selected`,
    allOnPage: 'Select all on this page',
    copy: 'Copy links',
    delete: 'Delete',
    clear: 'Clear the selection',
  },

  deletion: {
    title: (count: number) => (count === 1 ? 'Delete this file?' : `Delete ${files(count)}?`),
    one: (name: string) => `“${name}” will be gone for everyone who has its link. This cannot be undone.`,
    many: 'They will be gone for everyone who has their links. This cannot be undone.',
    confirm: (count: number) => (count === 1 ? 'Delete' : `Delete ${files(count)}`),
    busy: (done: number, count: number) => `Deleting ${formatCount(done + 1)} of ${formatCount(count)}…`,
    done: (count: number) => (count === 1 ? 'Deleted.' : `${files(count)} deleted.`),
    elsewhere: (count: number) =>
      `${count === 1 ? '1 of them is' : `${formatCount(count)} of them are`} on other pages.`,
    failed: (count: number, reason: string) =>
      `${count === 1 ? 'One file was' : `${files(count)} were`} not deleted. ${reason}`,
  },

  link: {
    copied: (count: number) => (count === 1 ? 'Link copied.' : `${formatCount(count)} links copied.`),
    failed: 'The browser did not allow copying. Select the link in the details and copy it by hand.',
  },

  viewer: {
    label: (name: string) => `File: ${name}`,
    position: (position: number, total: number) => `${formatCount(position)} of ${formatCount(total)}`,
    previous: 'Previous file',
    next: 'Next file',
    details: 'Details',
    copy: 'Copy link',
    download: 'Download',
    delete: 'Delete',
    openPdf: 'Open the PDF',
    open: 'Open in a new tab',
    noPreview: 'There is no preview of this kind of file.',
    noPicture: 'This picture cannot be shown here. Download it to see it.',
    noPlayback: 'The browser cannot play this file. Download it to play it.',
    loading: 'Loading…',
    notLoaded: 'The viewer could not be loaded. Reload the page and try again.',
    noText: 'This text could not be loaded.',
    emptyText: 'This file is empty.',
    textPreview: (shown: string, size: string) =>
      `The first ${shown} of ${size} are shown. Download the file to see all of it.`,
    gone: 'This file was deleted.',
    unknown: 'The server returned no information about this file. Try again later.',
    back: 'Back to the page',
  },

  details: {
    title: 'Details',
    name: 'Name',
    type: 'Type',
    size: 'Size',
    sizeExact: (size: string, bytes: number) =>
      bytes < 1000 ? size : `${size} (${formatCount(bytes)} bytes)`,
    dimensions: 'Dimensions',
    pixels: (width: number, height: number) => `${formatCount(width)} × ${formatCount(height)} pixels`,
    added: 'Added',
    hash: 'SHA-256',
    link: 'Link',
  },

  uploads: {
    label: 'Uploads',
    drop: 'Drop to upload',
    dropMayNot: 'This token may not add files',
    dropMayNotAbout: 'Nothing will be uploaded. The scope media:write is needed.',
    dropAbout: (bucket: string) => `Files and folders go into “${bucket}”.`,
    sending: (done: number, all: number) => `Uploading: ${formatCount(done)} of ${files(all)}`,
    waitingForServer: 'Waiting for the server',
    paused: (left: number) => `${files(left)} paused`,
    finished: (count: number) => `${files(count)} uploaded`,
    failed: (count: number) => `${files(count)} not uploaded`,
    partly: (done: number, all: number) => `${formatCount(done)} of ${files(all)} uploaded`,
    needed: (count: number) => `${files(count)} to choose again`,
    nothing: 'Nothing to upload',
    reading: (count: number) =>
      count === 0 ? 'Reading the folders…' : `Reading the folders: ${files(count)} so far`,
    bytes: (sent: string, all: string) => `${sent} of ${all}`,
    speed: (size: string) => `${size}/s`,
    timeLeft: (time: string) => `${time} left`,
    fewSeconds: 'a few seconds',
    seconds: (count: number) => `${count} s`,
    minutes: (count: number) => `${count} min`,
    hours: (count: number, minutes: number) => `${count} h ${minutes} min`,
    notDone: (failed: number) => `${formatCount(failed)} not uploaded`,
    keptForLater: 'You may close the page: the rest continues when you sign in again in this browser.',
    keepOpen: 'Keep the page open until this is done.',
    orderNote: 'Files that you pause, retry or choose again are listed after the others.',
    systemFiles: (count: number) =>
      `${count === 1 ? '1 system file' : `${formatCount(count)} system files`} left out (such as .DS_Store and Thumbs.db)`,
    emptyFolders: (count: number) =>
      `${count === 1 ? '1 empty folder' : `${formatCount(count)} empty folders`} left out`,
    unreadableFolders: (count: number) =>
      `${count === 1 ? '1 folder' : `${formatCount(count)} folders`} could not be read, and nothing in ${count === 1 ? 'it' : 'them'} was uploaded`,
    duplicates: (count: number) =>
      count === 1
        ? '1 file is in the list already, with the same name, size and date. It was not added again.'
        : `${files(count)} are in the list already, with the same name, size and date. They were not added again.`,
    addAgain: 'Add again',
    copy: 'Copy links',
    retryFailed: 'Retry failed files',
    showMore: (count: number) => `Show ${formatCount(count)} more`,
    overall: 'All uploads',
    one: (name: string) => `Upload of ${name}`,
    progress: (sent: string, size: string) => `${sent} of ${size}`,
    waiting: 'Waiting',
    underWay: 'Uploading',
    pausedAll: 'Paused',
    pausedAt: (sent: string, size: string) => `Paused at ${sent} of ${size}`,
    done: 'Uploaded',
    again: 'Choose this file again to continue',
    pause: (name: string) => `Pause ${name}`,
    resume: (name: string) => `Resume ${name}`,
    retry: (name: string) => `Try ${name} again`,
    cancel: (name: string) => `Cancel ${name}`,
    pauseAll: 'Pause all',
    resumeAll: 'Resume all',
    collapse: 'Show less',
    expand: 'Show all uploads',
    clear: 'Close the list of uploads',
    cancelAll: 'Cancel all',
    more: (count: number) => `and ${files(count)} more`,
    show: 'Show them',
    continued: (count: number) => `Continuing ${files(count)} from your last visit.`,
    mayNot: 'This token may not add files. Sign in with one that has the scope media:write.',
    unknown: 'The server refused this file.',
    unreadable: 'This file could not be read. It was moved or deleted, or you have no permission to read it.',
    changed: 'This file changed after you chose it, or is gone. Choose it again.',
    tooLarge: 'This file is too large for the server.',
    noRoom: (limit: string) => `There is no room for this file: the bucket may hold ${limit}.`,
    tooLargeFor: (limit: string) => `This file is too large: the server takes files of up to ${limit}.`,
    held: 'Uploads start when the server responds again.',
    notLoaded: 'The uploader could not be loaded. Reload the page and try again.',
  },

  connection: {
    lost: 'The server cannot be reached.',
    offline: 'You are offline.',
    retrying: 'Reconnecting automatically.',
    now: 'Try now',
    back: 'The server is back.',
  },

  faults: {
    connection: 'The server cannot be reached. Check that it runs and that you are online.',
    unexpected: 'An unexpected error occurred. Try again; if it happens again, see the server’s log.',
  },
} as const
