import { formatCount } from '../locale.ts'

/** The texts of the details of a file, and of the form that edits them. */
export const details = {
  title: 'Details',
  name: 'Name',
  path: 'Path',
  type: 'Type',
  size: 'Size',
  sizeExact: (size: string, bytes: number) => (bytes < 1000 ? size : `${size} (${formatCount(bytes)} bytes)`),
  dimensions: 'Dimensions',
  pixels: (width: number, height: number) => `${formatCount(width)} × ${formatCount(height)} pixels`,
  added: 'Added',
  expires: 'Expires',
  hash: 'SHA-256',
  link: 'Link',
  altText: 'Alternative text',
  altTextHint: 'Describes the picture to people who cannot see it.',
  caption: 'Caption',
  labels: 'Labels',
  edit: 'Edit',
  save: 'Save',
  saved: 'Saved.',
  notSaved: (reason: string) => `The changes were not saved. ${reason}`,
  conflict:
    'Others have changed this file since you opened the form. Nothing was saved. Compare the texts, then save yours or use theirs.',
  theirs: 'Saved by others:',
  noText: 'no text',
  useTheirs: 'Use theirs',
  useTheirsOf: (label: string) => `Use theirs: ${label}`,
  saveMine: 'Save mine',
  /** The point of a picture that cut sizes keep in their frame. */
  focus: {
    legend: 'Focal point',
    hint: 'Smaller sizes that cut the picture keep this point in view. Click the picture, or move the point with the arrow keys. Escape undoes that.',
    none: 'No focal point is set.',
    at: (left: number, top: number) => `${left.toFixed(0)} % from the left, ${top.toFixed(0)} % from the top`,
    clear: 'Remove the point',
    crops: 'What the cut sizes show',
    crop: (name: string, width: number, height: number) => `${name}, ${width} × ${height}`,
  },
  /** What cameras write into pictures. */
  camera: {
    taken: 'Taken',
    camera: 'Camera',
    lens: 'Lens',
    exposure: 'Exposure',
    focalLength: 'Focal length',
    location: 'Location',
    locationHint: 'Everyone who gets the file or its link can read the location.',
  },
  /** The question before a picture with a location is shared. */
  location: {
    title: 'Location in the picture',
    warning: (name: string) =>
      `“${name}” contains the place where it was taken. Everyone who gets the file or its link can read it.`,
    notExaminedTitle: 'Location not checked',
    notExamined: (name: string) =>
      `“${name}” could not be loaded to check whether it contains the place where it was taken. If it does, everyone who gets the file or its link can read it.`,
    share: 'Share anyway',
  },
}
