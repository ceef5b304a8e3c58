/** What cameras write into pictures. */
export const camera = {
  taken: 'Taken',
  camera: 'Camera',
  lens: 'Lens',
  exposure: 'Exposure',
  focalLength: 'Focal length',
  location: 'Location',
  locationHint: 'Everyone who gets the file or its link can read the location.',
}

/** The question before a picture with a location is shared. */
export const location = {
  title: 'Location in the picture',
  warning: (name: string) =>
    `“${name}” contains the place where it was taken. Everyone who gets the file or its link can read it.`,
  notExaminedTitle: 'Location not checked',
  notExamined: (name: string) =>
    `“${name}” could not be loaded to check whether it contains the place where it was taken. If it does, everyone who gets the file or its link can read it.`,
  share: 'Share anyway',
}
