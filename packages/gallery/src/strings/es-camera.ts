/** What cameras write into pictures. */
export const camera = {
  taken: 'Tomada',
  camera: 'Cámara',
  lens: 'Objetivo',
  exposure: 'Exposición',
  focalLength: 'Distancia focal',
  location: 'Ubicación',
  locationHint: 'Cualquiera que reciba el archivo o su enlace puede leer la ubicación.',
}

/** The question before a picture with a location is shared. */
export const location = {
  title: 'Ubicación en la imagen',
  warning: (name: string) =>
    `«${name}» contiene el lugar donde se tomó. Cualquiera que reciba el archivo o su enlace puede leerlo.`,
  notExaminedTitle: 'Ubicación no comprobada',
  notExamined: (name: string) =>
    `No se pudo cargar «${name}» para comprobar si contiene el lugar donde se tomó. Si lo contiene, cualquiera que reciba el archivo o su enlace puede leerlo.`,
  share: 'Compartir de todos modos',
}
